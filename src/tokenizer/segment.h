// SPDX-License-Identifier: Apache-2.0
// What a chat template hands to the tokenizer.
#pragma once
#include <string>

namespace juno::tokenizer {

// A stretch of a prompt. Only trusted text (a template's own, and the special tokens) may become control
// tokens: whatever was derived from messages, tools or arguments is untrusted, character by character.
struct Segment {
  std::string text;
  bool trusted = false;
};

}  // namespace juno::tokenizer
