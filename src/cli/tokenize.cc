// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "api/text.h"
#include "cli/demo_model.h"
#include "cli/options.h"

namespace juno::cli {

api::Text open_text(const std::string& path) {
  const Log log = stderr_log(false);
  return path.empty() ? take(api::Text::open_memory(demo_model(), kDemoModelName, log))
                      : take(api::Text::open(path, log));
}

namespace {

using Json = nlohmann::ordered_json;

struct TokenizeOptions {
  std::string model_path;
  bool special = false, bos = false, json = false;
};

// Bytes of a piece as text; those that are no UTF-8 are U+FFFD.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

int tokenize(const TokenizeOptions& o) {
  const api::Text text = open_text(o.model_path);
  const std::vector<int32_t> ids = text.encode(read_text("-"), o.special, o.bos);
  if (o.json) {
    Json pieces = Json::array();
    for (int32_t id : ids) pieces.push_back(take(text.piece(id)));
    print(dump({{"ids", ids}, {"pieces", pieces}}) + "\n");
  } else {
    print(fmt::format("{}\n", fmt::join(ids, " ")));
  }
  return 0;
}

// Ids separated by blanks or commas, or what tokenize --json printed.
std::vector<int32_t> read_ids() {
  const std::string input = read_text("-");
  const Json json = Json::parse(input, nullptr, /*allow_exceptions=*/false);
  std::vector<int32_t> ids;
  const Json& list = json.is_object() && json.contains("ids") ? json["ids"] : json;
  if (list.is_array()) {
    for (const Json& id : list) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
        fail(Code::kBadData, "[cli] stdin: {} is no token id", id.dump());
      ids.push_back(id.get<int32_t>());
    }
    return ids;
  }
  std::string words;
  for (char c : input) words += std::isspace(static_cast<unsigned char>(c)) ? ',' : c;
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(',', begin), words.size());
    if (end > begin) {
      const int64_t id = parse_numbers(words.substr(begin, end - begin), "stdin", Code::kBadData).front();
      if (id < 0 || id > INT32_MAX) fail(Code::kBadData, "[cli] stdin: {} is no token id", id);
      ids.push_back(static_cast<int32_t>(id));
    }
    begin = end + 1;
  }
  return ids;
}

int detokenize(const TokenizeOptions& o) {
  const api::Text text = open_text(o.model_path);
  const std::string decoded = take(text.decode(read_ids()));
  print(o.json ? dump({{"text", decoded}}) + "\n" : decoded);
  return 0;
}

std::shared_ptr<TokenizeOptions> add_common(CLI::App& app) {
  auto o = std::make_shared<TokenizeOptions>();
  app.add_option("--model-path,-m", o->model_path,
                 "GGUF file, weights not needed; without it, the demo model");
  app.add_flag("--json", o->json, "Print JSON");
  return o;
}

}  // namespace

Run add_tokenize(CLI::App& app) {
  auto o = add_common(app);
  app.add_flag("--special", o->special, "Text of control tokens becomes control tokens");
  app.add_flag("--bos", o->bos, "Begin as the model wants a prompt to begin");
  return [o] { return tokenize(*o); };
}

Run add_detokenize(CLI::App& app) {
  auto o = add_common(app);
  return [o] { return detokenize(*o); };
}

}  // namespace juno::cli
