// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "api/text.h"
#include "cli/options.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RenderOptions {
  std::string source, model_path, messages, now;
  std::string tokens[4];
};
constexpr const char* kTokenNames[] = {"bos_token", "eos_token", "unk_token", "pad_token"};

Json parse_file(const std::string& path) {
  try {
    return Json::parse(read_text(path));
  } catch (const Json::parse_error& e) {
    // Without the library's "[json.exception.…] ".
    const std::string_view why = e.what();
    fail(Code::kBadData, "[cli] {} is not JSON: {}", path, why.substr(why.find("] ") + 2));
  }
}

int render(const RenderOptions& o) {
  if (o.source.empty() && o.model_path.empty())
    fail(Code::kUsage, "[cli] render needs --template or --model-path");
  Json tokens = Json::object();
  std::string source;
  if (!o.model_path.empty()) {
    const api::Text text = open_text(o.model_path);
    tokens = text.special_tokens();
    if (o.source.empty()) source = take(text.chat_template());
  }
  if (!o.source.empty()) source = take(api::template_source(o.source));

  Json request = parse_file(o.messages);
  if (request.is_array()) request = {{"messages", request}};
  if (!request.is_object())
    fail(Code::kBadData, "[cli] {}: an object with messages, or their list, is needed", o.messages);
  for (size_t i = 0; i < std::size(kTokenNames); ++i) {
    // In the file, then by flag; null is not defined.
    if (request.contains(kTokenNames[i])) tokens[kTokenNames[i]] = request[kTokenNames[i]];
    request.erase(kTokenNames[i]);
    if (!o.tokens[i].empty()) tokens[kTokenNames[i]] = o.tokens[i];
  }
  print(take(api::render(source, request, tokens, o.now)));
  return 0;
}

}  // namespace

Run add_render(CLI::App& app) {
  auto o = std::make_shared<RenderOptions>();
  app.add_option("--template", o->source, "A built-in template's name or a Jinja file");
  app.add_option("--model-path,-m", o->model_path, "GGUF file whose own template is rendered");
  app.add_option("--messages", o->messages,
                 "JSON: messages, tools, add_generation_prompt and what else the template reads")
      ->required();
  app.add_option("--now", o->now, "Time that strftime_now shows, as 2025-03-14T15:09:26");
  for (size_t i = 0; i < std::size(kTokenNames); ++i) {
    std::string flag = std::string("--") + kTokenNames[i];
    std::replace(flag.begin(), flag.end(), '_', '-');
    app.add_option(flag, o->tokens[i], fmt::format("Text of {}; else the model's", kTokenNames[i]));
  }
  return [o] { return render(*o); };
}

}  // namespace juno::cli
