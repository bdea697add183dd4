// SPDX-License-Identifier: Apache-2.0
#include "engine/reply_text.h"

#include <utility>

namespace juno::engine {

ReplyText::ReplyText(const tokenizer::Tokenizer& tokenizer, std::vector<std::string> stops, OnText on_text)
    : decoder_(tokenizer, /*special=*/false, /*continues=*/true),
      matcher_(std::move(stops)),
      on_text_(std::move(on_text)) {}

bool ReplyText::push(int32_t id) {
  const size_t before = text_.size();
  const bool more = matcher_.push(decoder_.push(id), text_);
  emit(before);
  return more;
}

void ReplyText::finish() {
  const size_t before = text_.size();
  matcher_.push(decoder_.flush(), text_);
  matcher_.flush(text_);
  emit(before);
}

void ReplyText::emit(size_t from) {
  if (on_text_ && text_.size() > from) on_text_(std::string_view(text_).substr(from));
}

}  // namespace juno::engine
