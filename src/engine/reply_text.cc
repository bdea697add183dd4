// SPDX-License-Identifier: Apache-2.0
#include "engine/reply_text.h"

#include <utility>

namespace juno::engine {

ReplyText::ReplyText(const tokenizer::Tokenizer& tokenizer, std::vector<std::string> stops, OnText on_text,
                     std::vector<int32_t> keep)
    : decoder_(tokenizer, /*special=*/false, /*continues=*/true),
      matcher_(std::move(stops)),
      on_text_(std::move(on_text)) {
  decoder_.show(std::move(keep));
}

bool ReplyText::push(int32_t id) {
  const size_t before = text_.size();
  const bool more = match(decoder_.push(id));
  emit(before);
  return more;
}

void ReplyText::finish() {
  const size_t before = text_.size();
  match(decoder_.flush());
  matcher_.flush(text_);
  emit(before);
}

bool ReplyText::match(std::string_view characters) {
  decoded_ += characters.size();
  return matcher_.push(characters, text_);
}

void ReplyText::emit(size_t from) {
  if (on_text_ && text_.size() > from) on_text_(std::string_view(text_).substr(from));
}

}  // namespace juno::engine
