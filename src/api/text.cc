// SPDX-License-Identifier: Apache-2.0
#include "api/text.h"

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "api/named.h"
#include "base/mapped_file.h"
#include "gguf/reader.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTemplateKey = "tokenizer.chat_template";

std::tm parse_time(const std::string& text) {
  std::tm tm{};
  int end = 0;
  const int fields = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon,
                                 &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end);
  if (fields != 6 || static_cast<size_t>(end) != text.size())
    fail(Code::kUsage, "[api] \"{}\" is not a time such as 2025-03-14T15:09:26", text);
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  tm.tm_isdst = 0;
  const std::tm given = tm;
  timegm(&tm);  // fills in the day of the week and of the year
  if (tm.tm_mday != given.tm_mday || tm.tm_mon != given.tm_mon || tm.tm_hour != given.tm_hour)
    fail(Code::kUsage, "[api] \"{}\" is not a time that exists", text);
  return tm;
}

// Takes a variable out of the request; null and absence are the same.
Json taken(Json& request, const char* name, Json::value_t type, const char* what) {
  if (!request.contains(name) || request[name].is_null()) {
    request.erase(name);
    return nullptr;
  }
  Json value = std::move(request[name]);
  request.erase(name);
  if (value.type() != type) fail(Code::kBadData, "[api] {} must be {}", name, what);
  return value;
}

std::optional<std::string> text_of(const Json& tokens, const char* name) {
  if (!tokens.contains(name) || tokens[name].is_null()) return std::nullopt;
  if (!tokens[name].is_string()) fail(Code::kBadData, "[api] {} must be text", name);
  return tokens[name].get<std::string>();
}

}  // namespace

struct Text::Parts {
  gguf::Reader file;
  tokenizer::Tokenizer tokenizer;
};

Text::Text(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Text::Text(Text&&) noexcept = default;
Text::~Text() = default;

namespace {

std::pair<gguf::Reader, tokenizer::Tokenizer> read(Result<gguf::Reader> opened, const Log& log) {
  gguf::Reader file = take(std::move(opened));
  auto tokenizer =
      take(named(tokenizer::Tokenizer::load(file.metadata(), named(log, file.name())), file.name()));
  return {std::move(file), std::move(tokenizer)};
}

}  // namespace

Result<Text> Text::open(const std::string& path, const Log& log) {
  return guard([&] {
    auto [file, tokenizer] = read(gguf::Reader::open(path, log), log);
    return Text(std::unique_ptr<Parts>(new Parts{std::move(file), std::move(tokenizer)}));
  });
}

Result<Text> Text::open_memory(std::span<const uint8_t> bytes, const std::string& name, const Log& log) {
  return guard([&] {
    auto [file, tokenizer] = read(gguf::Reader::open_memory(bytes, name, log), log);
    return Text(std::unique_ptr<Parts>(new Parts{std::move(file), std::move(tokenizer)}));
  });
}

std::vector<int32_t> Text::encode(std::string_view text, bool special, bool bos) const {
  return parts_->tokenizer.encode(text, {.parse_special = special, .add_special = bos});
}

Result<std::string> Text::piece(int32_t id) const {
  return guard([&] {
    if (id < 0 || id >= parts_->tokenizer.size())
      fail(Code::kBadData, "[api] {} is no token id: the vocabulary has {}", id, parts_->tokenizer.size());
    return std::string(parts_->tokenizer.piece(id));
  });
}

Result<std::string> Text::decode(std::span<const int32_t> ids) const {
  return guard([&] {
    for (int32_t id : ids) take(piece(id));
    return parts_->tokenizer.decode(ids, /*special=*/true);
  });
}

Result<std::string> Text::chat_template() const {
  return guard([&] {
    const auto source = parts_->file.metadata().get<std::string>(kTemplateKey);
    if (!source) fail(Code::kConfig, "[api] {} has no {}", parts_->file.name(), kTemplateKey);
    return *source;
  });
}

Json Text::special_tokens() const {
  const tokenizer::SpecialIds& ids = parts_->tokenizer.special();
  Json tokens = Json::object();
  const auto add = [&](const char* name, std::optional<int32_t> id) {
    if (id) tokens[name] = std::string(parts_->tokenizer.piece(*id));
  };
  add("bos_token", ids.bos);
  add("eos_token", ids.eos);
  add("unk_token", ids.unk);
  add("pad_token", ids.pad);
  return tokens;
}

Result<std::string> render(const std::string& source, const Json& request, const Json& tokens,
                           const std::string& now) {
  return guard([&] {
    const auto parsed = take(tokenizer::ChatTemplate::parse(source, kTemplateKey));
    Json rest = request;
    const Json messages = taken(rest, "messages", Json::value_t::array, "a list");
    const Json tools = taken(rest, "tools", Json::value_t::array, "a list");
    const Json documents = taken(rest, "documents", Json::value_t::array, "a list");
    const Json add = taken(rest, "add_generation_prompt", Json::value_t::boolean, "true or false");
    const Json go_on = taken(rest, "continue_final_message", Json::value_t::boolean, "true or false");
    if (messages.is_null()) fail(Code::kBadData, "[api] messages are missing");
    tokenizer::ChatInputs inputs;
    inputs.messages = &messages;
    inputs.tools = tools.is_null() ? nullptr : &tools;
    inputs.documents = documents.is_null() ? nullptr : &documents;
    inputs.arguments = &rest;
    inputs.add_generation_prompt = add.is_null() ? false : add.get<bool>();
    inputs.continue_final_message = go_on.is_null() ? false : go_on.get<bool>();
    inputs.bos_token = text_of(tokens, "bos_token");
    inputs.eos_token = text_of(tokens, "eos_token");
    inputs.unk_token = text_of(tokens, "unk_token");
    inputs.pad_token = text_of(tokens, "pad_token");
    if (!now.empty()) inputs.now = parse_time(now);
    return take(parsed.render(inputs)).text();
  });
}

Result<std::string> template_source(const std::string& name_or_file) {
  return guard([&] {
    if (const auto* builtin = tokenizer::find_builtin(name_or_file)) return std::string(builtin->source);
    const Result<MappedFile> file = MappedFile::open(name_or_file);
    if (!file) {
      fail(Code::kNoInput, "[api] no chat template: {}; the built-in ones are {}", file.error().message,
           tokenizer::builtin_names());
    }
    std::string source(file->size(), '\0');
    take(file->read(0, {reinterpret_cast<uint8_t*>(source.data()), source.size()}));
    return source;
  });
}

}  // namespace juno::api
