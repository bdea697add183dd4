// SPDX-License-Identifier: Apache-2.0
// From a conversation to token ids: the chat template, then the tokenizer, which believes only the template's
// own text.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/session.h"

namespace juno::gguf {
class Reader;
}

namespace juno::api {

// The ids with the BOS token in front where the model wants one and it is not there yet.
std::vector<int32_t> begun(std::vector<int32_t> ids, const tokenizer::Tokenizer& tokenizer);

class Prompt {
 public:
  // given: a built-in template's name or a file; "": the model's own. The model's own may be missing or
  // broken: then render() fails, and a broken one is warned of.
  Prompt(const gguf::Reader& file, const tokenizer::Tokenizer& tokenizer, const std::string& given,
         const Log& log);
  ~Prompt();

  const tokenizer::ChatTemplate* chat_template() const { return template_.get(); }
  const std::optional<Error>& fault() const { return fault_; }  // why there is none

  // The ids of the conversation and the beginning of an answer. Throws Error.
  std::vector<int32_t> render(std::span<const Message> messages) const;

 private:
  const tokenizer::Tokenizer& tokenizer_;
  std::string source_;  // the file that the template is in
  std::unique_ptr<const tokenizer::ChatTemplate> template_;
  std::optional<Error> fault_;
};

}  // namespace juno::api
