// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them, and text that is safe on a terminal.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace juno::cli {

std::string human_bytes(uint64_t bytes);  // "24.8 MB" (powers of ten), "512 B"
std::string human_count(uint64_t count);  // "23.1 M"
// Control characters, which could move the cursor or clear the screen, become their escapes: "\x1b".
// printable is one line; harmless keeps line ends and tabs.
std::string printable(std::string_view text);
std::string harmless(std::string_view text);

}  // namespace juno::cli
