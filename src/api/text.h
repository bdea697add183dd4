// SPDX-License-Identifier: Apache-2.0
// A model's text side alone: its tokenizer and its chat template, without its weights.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace juno::api {

class Text {
 public:
  // A GGUF file with or without weights.
  static Result<Text> open(const std::string& path, const Log& log);
  static Result<Text> open_memory(std::span<const uint8_t> bytes, const std::string& name, const Log& log);
  Text(Text&&) noexcept;
  ~Text();

  // special: text that looks like a control token becomes that token; bos: as the model wants it at the
  // beginning.
  std::vector<int32_t> encode(std::string_view text, bool special, bool bos) const;
  // An id outside the vocabulary is kBadData.
  Result<std::string> decode(std::span<const int32_t> ids) const;
  Result<std::string> piece(int32_t id) const;  // the token's own bytes
  // The file's tokenizer.chat_template; kConfig when it has none.
  Result<std::string> chat_template() const;
  // bos_token, eos_token, unk_token and pad_token as texts, where the vocabulary has them.
  nlohmann::ordered_json special_tokens() const;

 private:
  struct Parts;
  explicit Text(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// request: {messages, tools, documents, add_generation_prompt, continue_final_message, and what else the
// template reads}; tokens: {bos_token, …}; now: "2025-03-14T15:09:26", or "" for the present. -> the rendered
// prompt.
Result<std::string> render(const std::string& source, const nlohmann::ordered_json& request,
                           const nlohmann::ordered_json& tokens, const std::string& now);
// The source of a built-in template by its name, or of a Jinja file.
Result<std::string> template_source(const std::string& name_or_file);

}  // namespace juno::api
