// SPDX-License-Identifier: Apache-2.0
#include "server/openai/completion_prompt.h"

#include <fmt/format.h>

#include <array>

#include "tokenizer/tokenizer.h"

namespace juno::server {
namespace {

using tokenizer::Tokenizer;

std::vector<int32_t> read_ids(const Json& list, const std::string& param, int32_t size) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto id = list[i].get<int64_t>();
    if (id < 0 || id >= size) {
      throw bad("invalid_value", fmt::format("{}[{}]", param, i),
                fmt::format("'{}[{}]' is {}: token ids are 0 to {}", param, i, id, size - 1));
    }
    out.push_back(static_cast<int32_t>(id));
  }
  return out;
}

// Before the text, between text and suffix, and where the reply begins.
struct Marks {
  std::string_view prefix, suffix, middle;
};
constexpr std::array kMarks = {
    Marks{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    Marks{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    Marks{"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    Marks{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
    Marks{"▁<PRE>", "▁<SUF>", "▁<MID>"},
    Marks{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
};

std::optional<int32_t> control_token(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text, {.parse_special = true});
  if (ids.size() == 1 && tokenizer.piece(ids[0]) == text) return ids[0];
  return {};
}

std::vector<int32_t> filled_in(const std::vector<int32_t>& prompt, const std::string& suffix,
                               bool parse_special, const Tokenizer& tokenizer) {
  for (const Marks& marks : kMarks) {
    const auto before = control_token(tokenizer, marks.prefix),
               between = control_token(tokenizer, marks.suffix),
               after = control_token(tokenizer, marks.middle);
    if (!before || !between || !after) continue;
    const auto bos = tokenizer.special().bos;
    const bool begins = bos && !prompt.empty() && prompt[0] == *bos;
    std::vector<int32_t> out;
    if (begins) out.push_back(*bos);
    out.push_back(*before);
    out.insert(out.end(), prompt.begin() + (begins ? 1 : 0), prompt.end());
    out.push_back(*between);
    for (const int32_t id : tokenizer.encode(suffix, {.parse_special = parse_special})) out.push_back(id);
    out.push_back(*after);
    return out;
  }
  throw bad("unsupported_parameter", "suffix",
            "'suffix' is not supported: the model has no tokens for filling in");
}

}  // namespace

std::vector<CompletionPrompt> read_prompts(const Values& values, const char* name,
                                           const api::Service& service, bool parse_special) {
  const Tokenizer& tokenizer = service.tokenizer();
  std::vector<CompletionPrompt> out;
  const auto add = [&](const Json& value, std::string param) {
    CompletionPrompt one{std::move(param), {}, {}, {}};
    if (value.is_string()) {
      one.text = value.get<std::string>();
      one.ids = tokenizer.encode(one.text, {.parse_special = parse_special, .add_special = true});
      if (one.ids.empty())
        throw bad("empty_string", one.param, fmt::format("'{}' must not be empty for this model", one.param));
    } else {
      one.ids = read_ids(value, one.param, service.info().vocab);
      one.text = tokenizer.decode(one.ids, true);
    }
    out.push_back(std::move(one));
  };
  const Json& given = *values.find(name);
  if (given.is_string() || given[0].is_number()) {
    add(given, name);
  } else {
    for (size_t i = 0; i < given.size(); ++i) add(given[i], fmt::format("{}[{}]", name, i));
  }
  return out;
}

std::vector<CompletionPrompt> completion_prompts(const Values& values, const api::Service& service) {
  const bool parse_special = values.flag("parse_special", true);
  auto out = read_prompts(values, "prompt", service, parse_special);
  const auto suffix = values.text("suffix");
  if (!suffix || suffix->empty()) return out;
  for (CompletionPrompt& prompt : out)
    prompt.ids = filled_in(prompt.ids, *suffix, parse_special, service.tokenizer());
  return out;
}

}  // namespace juno::server
