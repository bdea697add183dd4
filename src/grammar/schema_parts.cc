// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema_parts.h"

#include <algorithm>
#include <limits>

#include "grammar/fault.h"

namespace juno::grammar {
namespace {

using Done = Place::Done;

constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max() - 1;

struct Collector {
  const SchemaDocument& document;
  Parts& parts;

  void apply(const Place& place, const std::string& keyword, const Json& value);
};

[[noreturn]] void invalid(const Place& at, std::string_view keyword, std::string_view why) {
  refuse(true, keyword, at.pointer, why);
}
[[noreturn]] void unsupported(const Place& at, std::string_view keyword, std::string_view why) {
  refuse(false, keyword, at.pointer, why);
}

// As JSON, not longer than a message should be.
std::string shown(const Json& value) {
  constexpr size_t kMost = 80;
  std::string out = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (out.size() > kMost) out = out.substr(0, kMost) + "...";
  return out;
}

uint8_t type_bits(const Place& at, const Json& name) {
  constexpr std::pair<const char*, uint8_t> kTypes[] = {
      {"null", kNull},     {"boolean", kBoolean}, {"integer", kInteger}, {"number", kInteger | kNumber},
      {"string", kString}, {"array", kArray},     {"object", kObject}};
  for (const auto& [known, bits] : kTypes) {
    if (name == known) return bits;
  }
  invalid(at, "type", fmt::format("is {}, which is no JSON type", shown(name)));
}

void type(Collector& c, const Place& at, const Json& value) {
  uint8_t bits = 0;
  if (value.is_array()) {
    for (const Json& name : value) bits |= type_bits(at, name);
    if (bits == 0) invalid(at, "type", "names no JSON type");
  } else {
    bits = type_bits(at, value);
  }
  c.parts.types &= bits;
}

void values(Collector& c, const Place& at, const Json& value, const char* keyword) {
  if (!value.is_array() || value.empty()) invalid(at, keyword, "is no list of values");
  auto& known = c.parts.values;
  std::vector<Json> both;
  for (const Json& v : value) {
    if (!known || std::find(known->begin(), known->end(), v) != known->end()) both.push_back(v);
  }
  known = std::move(both);
}

void enumeration(Collector& c, const Place& at, const Json& value) {
  if (!(at.without & Place::kEnum)) values(c, at, value, "enum");
}
void constant(Collector& c, const Place& at, const Json& value) {
  if (!(at.without & Place::kEnum)) values(c, at, Json::array({value}), "const");
}

template <bool kLow, bool kExclusive>
void number_bound(Collector& c, const Place& at, const Json& value) {
  constexpr const char* kNames[] = {"maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"};
  const char* const keyword = kNames[2 * kLow + kExclusive];
  if (!value.is_number()) invalid(at, keyword, "is no number");
  const auto decimal = Decimal::parse(value.dump());
  if (!decimal) unsupported(at, keyword, "has more than 400 digits");
  std::optional<Bound>& bound = kLow ? c.parts.numbers.low : c.parts.numbers.high;
  const int order = bound ? decimal->compare(bound->at) : 0;
  const bool tighter = !bound || (kLow ? order > 0 : order < 0) || (order == 0 && kExclusive);
  if (tighter) bound = Bound{*decimal, kExclusive};
}

int32_t count(const Place& at, const char* keyword, const Json& value) {
  if (!value.is_number() || value.get<double>() < 0 || value.get<double>() != std::floor(value.get<double>()))
    invalid(at, keyword, "is no count");
  if (value.get<double>() > double(kMaxCount)) unsupported(at, keyword, "is larger than 2147483646");
  return value.get<int32_t>();
}

void at_least(int32_t& bound, int32_t value) { bound = std::max(bound, value); }
void at_most(int32_t& bound, int32_t value) { bound = bound < 0 ? value : std::min(bound, value); }

void min_length(Collector& c, const Place& at, const Json& v) {
  at_least(c.parts.min_length, count(at, "minLength", v));
}
void max_length(Collector& c, const Place& at, const Json& v) {
  at_most(c.parts.max_length, count(at, "maxLength", v));
}
void min_items(Collector& c, const Place& at, const Json& v) {
  at_least(c.parts.min_items, count(at, "minItems", v));
}
void max_items(Collector& c, const Place& at, const Json& v) {
  at_most(c.parts.max_items, count(at, "maxItems", v));
}

void pattern(Collector& c, const Place& at, const Json& value) {
  if (!value.is_string()) invalid(at, "pattern", "is no string");
  c.parts.patterns.emplace_back(value.get<std::string>(), at.pointer);
}

void format(Collector& c, const Place& at, const Json& value) {
  if (!value.is_string()) invalid(at, "format", "is no string");
  const char* const known = pattern_of_format(value.get<std::string>());
  if (!known) unsupported(at, "format", "is none of date, time, date-time, uuid, ipv4, email");
  c.parts.patterns.emplace_back(known, at.pointer);
}

void nothing(Collector&, const Place&, const Json&) {}

struct Keyword {
  std::string_view name;
  void (*apply)(Collector&, const Place&, const Json&);  // null: not supported
  uint8_t implies = 0;                                   // the type of value that it speaks of
};

constexpr Keyword kKeywords[] = {
    {"type", type},
    {"enum", enumeration},
    {"const", constant},
    {"minimum", number_bound<true, false>, kInteger | kNumber},
    {"maximum", number_bound<false, false>, kInteger | kNumber},
    {"exclusiveMinimum", number_bound<true, true>, kInteger | kNumber},
    {"exclusiveMaximum", number_bound<false, true>, kInteger | kNumber},
    {"minLength", min_length, kString},
    {"maxLength", max_length, kString},
    {"pattern", pattern, kString},
    {"format", format, kString},
    {"minItems", min_items, kArray},
    {"maxItems", max_items, kArray},
    // Put together once all places are known.
    {"prefixItems", nothing, kArray},
    {"items", nothing, kArray},
    {"properties", nothing, kObject},
    {"required", nothing, kObject},
    {"additionalProperties", nothing, kObject},
    {"anyOf", nothing},
    {"oneOf", nothing},
    {"allOf", nothing},
    {"$ref", nothing},
    // Annotations.
    {"$schema", nothing},
    {"$id", nothing},
    {"$comment", nothing},
    {"$defs", nothing},
    {"definitions", nothing},
    {"title", nothing},
    {"description", nothing},
    {"default", nothing},
    {"examples", nothing},
    {"deprecated", nothing},
    {"readOnly", nothing},
    {"writeOnly", nothing},
};

void Collector::apply(const Place& place, const std::string& name, const Json& value) {
  const auto* known = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                   [&](const Keyword& k) { return k.name == name; });
  if (known == std::end(kKeywords)) {
    if (name.starts_with("x-")) return;
    unsupported(place, name, "cannot be held to");
  }
  known->apply(*this, place, value);
  if (known->implies) parts.constrained = true;
}

// The types that the keywords of a schema without `type` speak of; all where there are none.
uint8_t implied_types(const Places& places) {
  uint8_t bits = 0;
  for (const Place& place : places) {
    if (!place.schema->is_object()) continue;
    for (const Keyword& k : kKeywords) {
      if (k.implies && place.schema->contains(k.name)) bits |= k.implies;
    }
  }
  return bits ? bits : static_cast<uint8_t>(kAllTypes);
}

const Json* find(const Place& place, const char* keyword) {
  if (!place.schema->is_object()) return nullptr;
  const auto found = place.schema->find(keyword);
  return found == place.schema->end() ? nullptr : &*found;
}

void check_schema(const Place& at, const Json& schema, const char* keyword) {
  if (!schema.is_object() && !schema.is_boolean()) invalid(at, keyword, "is no schema");
}

void collect_arrays(const SchemaDocument& document, Parts& parts) {
  size_t longest = 0;
  for (const Place& p : parts.all) {
    if (const Json* items = find(p, "items")) {
      if (items->is_array()) unsupported(p, "items", "is a list: use prefixItems");
      check_schema(p, *items, "items");
      parts.items.push_back(document.child(p, "items", *items));
    }
    if (const Json* prefix = find(p, "prefixItems")) {
      if (!prefix->is_array()) invalid(p, "prefixItems", "is no list of schemas");
      longest = std::max(longest, prefix->size());
    }
  }
  parts.prefix.resize(longest);
  for (size_t i = 0; i < longest; ++i) {
    for (const Place& p : parts.all) {
      const Json *prefix = find(p, "prefixItems"), *items = find(p, "items");
      if (prefix && i < prefix->size()) {
        check_schema(p, (*prefix)[i], "prefixItems");
        parts.prefix[i].push_back(
            document.child(document.child(p, "prefixItems", *prefix), std::to_string(i), (*prefix)[i]));
      } else if (items) {
        parts.prefix[i].push_back(document.child(p, "items", *items));
      }
    }
  }
}

void collect_names(Parts& parts) {
  const auto add = [&](const std::string& name) {
    const auto same = [&](const auto& known) { return known.first == name; };
    if (std::none_of(parts.properties.begin(), parts.properties.end(), same))
      parts.properties.push_back({name, {}});
  };
  bool described = false;
  for (const Place& p : parts.all) {
    if (const Json* properties = find(p, "properties")) {
      if (!properties->is_object()) invalid(p, "properties", "is no object");
      for (const auto& [name, schema] : properties->items()) {
        check_schema(p, schema, "properties");
        add(name);
      }
      described = true;
    }
  }
  for (const Place& p : parts.all) {
    if (const Json* required = find(p, "required")) {
      if (!required->is_array()) invalid(p, "required", "is no list of names");
      for (const Json& name : *required) {
        if (!name.is_string()) invalid(p, "required", "is no list of names");
        add(name.get<std::string>());
        parts.required.insert(name.get<std::string>());
        described = true;
      }
    }
  }
  parts.open = !described;
}

void collect_objects(const SchemaDocument& document, Parts& parts) {
  collect_names(parts);
  for (const Place& p : parts.all) {
    const Json* additional = find(p, "additionalProperties");
    if (!additional) continue;
    check_schema(p, *additional, "additionalProperties");
    parts.additional.push_back(document.child(p, "additionalProperties", *additional));
    parts.open = true;
  }
  for (auto& [name, places] : parts.properties) {
    for (const Place& p : parts.all) {
      const Json *properties = find(p, "properties"), *additional = find(p, "additionalProperties");
      if (properties && properties->contains(name)) {
        places.push_back(
            document.child(document.child(p, "properties", *properties), name, (*properties)[name]));
      } else if (additional) {
        places.push_back(document.child(p, "additionalProperties", *additional));
      }
    }
  }
}

void collect_choice(Parts& parts) {
  for (const Place& p : parts.all) {
    for (const auto& [keyword, kind] :
         {std::pair("anyOf", Place::kAnyOf), std::pair("oneOf", Place::kOneOf)}) {
      const Json* choice = find(p, keyword);
      if (!choice || (p.without & kind)) continue;
      if (!choice->is_array() || choice->empty()) invalid(p, keyword, "is no list of schemas");
      for (const Json& schema : *choice) check_schema(p, schema, keyword);
      parts.choice = {p, choice};
      parts.choice_kind = kind;
      return;
    }
  }
}

void check_ranges(Parts& parts) {
  const std::string& at = parts.all.empty() ? std::string() : parts.all.front().pointer;
  parts.numbers.integers = !(parts.types & kNumber);
  const bool only_numbers = parts.types && !(parts.types & ~(kInteger | kNumber));
  if (only_numbers && parts.numbers.empty()) refuse(true, "minimum", at, "leaves no number");
  if (parts.types == kString && parts.max_length >= 0 && parts.max_length < parts.min_length)
    refuse(true, "minLength", at, "leaves no string");
  if (parts.types == kArray && parts.max_items >= 0 && parts.max_items < parts.min_items)
    refuse(true, "minItems", at, "leaves no array");
}

}  // namespace

void refuse(bool invalid, std::string_view keyword, const std::string& pointer, std::string_view why) {
  Fault fault(invalid ? Refusal::kInvalidSchema : Refusal::kUnsupportedSchema,
              fmt::format("[grammar] schema at '{}': {} {}", pointer, keyword, why));
  fault.keyword = keyword;
  fault.pointer = pointer;
  throw fault;
}

const char* pattern_of_format(std::string_view format) {
#define JUNO_DATE                                                                                            \
  "([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[" \
  "0-9]|2[0-8]))"                                                                                            \
  "|([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29)"
#define JUNO_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
  constexpr std::pair<std::string_view, const char*> kFormats[] = {
      {"date", "^" JUNO_DATE "$"},
      {"time", "^" JUNO_TIME "$"},
      {"date-time", "^" JUNO_DATE "T" JUNO_TIME "$"},
      {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
      {"ipv4",
       "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
       "$"},
      {"email", "^[a-z0-9]+([._+-][a-z0-9]+)*@[a-z0-9]+(-[a-z0-9]+)*(\\.[a-z0-9]+(-[a-z0-9]+)*)+$"},
  };
#undef JUNO_DATE
#undef JUNO_TIME
  for (const auto& [name, pattern] : kFormats) {
    if (name == format) return pattern;
  }
  return nullptr;
}

Place SchemaDocument::child(const Place& of, std::string_view token, const Json& schema) const {
  std::string pointer = of.pointer + '/';
  for (char c : token) pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return {std::move(pointer), &schema};
}

Place SchemaDocument::resolve(const Place& from, const Json& reference) const {
  if (!reference.is_string()) invalid(from, "$ref", "is no string");
  const auto& text = reference.get_ref<const std::string&>();
  if (!text.starts_with('#') || (text.size() > 1 && text[1] != '/'))
    unsupported(from, "$ref", "leads out of this document");
  try {
    const Json::json_pointer pointer(text.substr(1));
    if (root_.contains(pointer)) {
      const Place target{text.substr(1), &root_.at(pointer)};
      check_schema(from, *target.schema, "$ref");
      return target;
    }
  } catch (const nlohmann::json::exception&) {  // not a pointer
  }
  invalid(from, "$ref", fmt::format("{} leads nowhere", shown(reference)));
}

Places SchemaDocument::flatten(const Places& all_of) const {
  Places flat, open(all_of.rbegin(), all_of.rend());
  std::set<std::pair<std::string, uint8_t>> seen;
  while (!open.empty()) {
    const Place place = std::move(open.back());
    open.pop_back();
    if (!seen.insert(place.key()).second) continue;
    flat.push_back(place);
    if (place.without & Place::kExpanded) continue;
    if (const Json* all = find(place, "allOf")) {
      if (!all->is_array() || all->empty()) invalid(place, "allOf", "is no list of schemas");
      const Place list = child(place, "allOf", *all);
      for (size_t i = all->size(); i-- > 0;) {
        check_schema(place, (*all)[i], "allOf");
        open.push_back(child(list, std::to_string(i), (*all)[i]));
      }
    }
    if (const Json* reference = find(place, "$ref")) {
      const Place target = resolve(place, *reference);
      const bool loops = seen.contains(target.key()) && find(target, "$ref");
      if (loops) invalid(place, "$ref", "leads back to itself");
      open.push_back(target);
    }
  }
  return flat;
}

Parts SchemaDocument::parts(const Places& all_of) const {
  Parts parts;
  parts.all = flatten(all_of);
  Collector collector{*this, parts};
  for (const Place& place : parts.all) {
    if (place.schema->is_boolean()) {
      if (!place.schema->get<bool>()) parts.types = 0;
      continue;
    }
    for (const auto& [keyword, value] : place.schema->items()) collector.apply(place, keyword, value);
  }
  if (parts.types == kAllTypes) parts.types = implied_types(parts.all);
  collect_arrays(*this, parts);
  collect_objects(*this, parts);
  collect_choice(parts);
  check_ranges(parts);
  return parts;
}

}  // namespace juno::grammar
