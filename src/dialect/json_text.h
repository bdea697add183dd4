// SPDX-License-Identifier: Apache-2.0
// JSON as text that comes bit by bit.
#pragma once
#include <string>
#include <string_view>

#include "dialect/stream.h"

namespace juno::dialect {

// As it stands between the quotes of a JSON string. Byte by byte: it may be called with pieces of a text.
std::string json_escaped(std::string_view text);

// One value, copied as it stands; blanks before it must have been read. It is only as correct as its quotes
// and brackets show. False where the text ends inside it.
Task<bool> read_json(Stream& in, const Put& put);

// As read_json, and what the string says; false for any other value.
Task<bool> read_json_string(Stream& in, std::string& to);

}  // namespace juno::dialect
