// SPDX-License-Identifier: Apache-2.0
// What a set of JSON schemas, all of which must hold, asks for: references followed, keywords checked and put
// together.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "grammar/number_range.h"

namespace juno::grammar {

using Json = nlohmann::ordered_json;

// A schema inside the document. `without`: keywords that were dealt with already; kExpanded is
// allOf and $ref.
struct Place {
  enum Done : uint8_t { kNothing = 0, kAnyOf = 1, kOneOf = 2, kEnum = 4, kExpanded = 8 };
  std::string pointer;
  const Json* schema = nullptr;
  uint8_t without = kNothing;
  auto key() const { return std::pair(pointer, without); }
};
using Places = std::vector<Place>;

enum Type : uint8_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kNumber = 8,  // with a fraction
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = 127,
};

struct Parts {
  uint8_t types = kAllTypes;
  bool constrained = false;                 // more than types is asked for
  std::optional<std::vector<Json>> values;  // of enum and const
  NumberRange numbers;
  int32_t min_length = 0, max_length = -1;                    // -1: no limit
  std::vector<std::pair<std::string, std::string>> patterns;  // pattern, pointer
  int32_t min_items = 0, max_items = -1;
  std::vector<Places> prefix;  // by index; already with what `items` of the others says
  Places items;                // of the rest
  std::vector<std::pair<std::string, Places>> properties;  // in order of appearance
  std::set<std::string> required;
  Places additional;
  bool open = false;                                    // other keys are allowed
  std::optional<std::pair<Place, const Json*>> choice;  // a place with anyOf or oneOf, and its alternatives
  Place::Done choice_kind = Place::kNothing;
  Places all;  // the places, flat
};

class SchemaDocument {
 public:
  explicit SchemaDocument(const Json& root) : root_(root) {}

  Place at(const std::string& pointer) const { return {pointer, &root_.at(Json::json_pointer(pointer))}; }
  Place child(const Place& of, std::string_view token, const Json& schema) const;

  // Throws Fault with keyword and pointer.
  Parts parts(const Places& all_of) const;

 private:
  Places flatten(const Places& all_of) const;
  Place resolve(const Place& from, const Json& reference) const;

  const Json& root_;
};

[[noreturn]] void refuse(bool invalid, std::string_view keyword, const std::string& pointer,
                         std::string_view why);

// Formats of strings as anchored patterns; null: not known.
const char* pattern_of_format(std::string_view format);

}  // namespace juno::grammar
