// SPDX-License-Identifier: Apache-2.0
// JSON from outside, read strictly: UTF-8, no key twice in an object, at most 128 levels, no lone surrogates,
// nothing after the value. And JSON to outside, which never throws.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace juno::server {

using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 128;

// Throws Refusal invalid_json, whose message gives the byte offset or the key. A number that no double holds
// becomes an infinity, which no field takes.
Json read_json(std::string_view text);

// A member that is there and not null, or a null pointer.
const Json* present(const Json& object, const std::string& name);

// Whether there is an infinity anywhere in it.
bool has_infinity(const Json& value);

// Bytes that are no UTF-8 become U+FFFD.
std::string to_text(const Json& value);

}  // namespace juno::server
