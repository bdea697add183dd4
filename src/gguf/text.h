// SPDX-License-Identifier: Apache-2.0
// Text from a file: whether it is UTF-8, and a form of it that is safe to show.
#pragma once
#include <string>
#include <string_view>

namespace juno::gguf {

// Shortest forms only, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// For messages: a replacement character for each byte that is not UTF-8, \xNN for control characters,
// at most `limit` bytes of the original and then "…".
std::string shown(std::string_view text, size_t limit = 128);

}  // namespace juno::gguf
