// SPDX-License-Identifier: Apache-2.0
// Text from a file, in a form that is safe to show.
#pragma once
#include <string>
#include <string_view>

namespace juno::gguf {

// For messages: a replacement character for each byte that is not UTF-8, \xNN for control characters,
// at most `limit` bytes of the original and then "…".
std::string shown(std::string_view text, size_t limit = 128);

}  // namespace juno::gguf
