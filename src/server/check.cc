// SPDX-License-Identifier: Apache-2.0
// Holds a body against a table of fields.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "server/fields.h"

namespace juno::server {
namespace {

constexpr size_t kMaxIgnored = 64;
constexpr double kTwo63 = 9223372036854775808.0;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kBoolean:
      return "a boolean";
    case Kind::kInteger:
      return "an integer";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kArray:
      return "an array";
    case Kind::kObject:
      return "an object";
  }
  return "";
}

std::string kinds_of(const Forms& forms) {
  std::string out;
  for (const Form& form : forms) {
    const auto name = kind_name(form.kind);
    if (out.find(name) == std::string::npos) out += (out.empty() ? "" : " or ") + std::string(name);
  }
  return out;
}

std::string_view found_kind(const Json& value) {
  if (value.is_number_float() && std::floor(value.get<double>()) != value.get<double>()) return "a fraction";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "a boolean";
  if (value.is_array()) return "an array";
  return value.is_object() ? "an object" : "null";
}

bool fits(const Json& value, Kind kind) {
  switch (kind) {
    case Kind::kBoolean:
      return value.is_boolean();
    case Kind::kNumber:
      return value.is_number();
    case Kind::kInteger:
      return value.is_number_integer() ||
             (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
    case Kind::kString:
      return value.is_string();
    case Kind::kArray:
      return value.is_array();
    case Kind::kObject:
      return value.is_object();
  }
  return false;
}

bool fits_any(const Json& value, const Forms& forms) {
  return forms.empty() ||
         std::any_of(forms.begin(), forms.end(), [&](const Form& form) { return fits(value, form.kind); });
}

// Of several arrays the one whose items take the first item.
const Form* choose(const Json& value, const Forms& forms) {
  const Form* chosen = nullptr;
  for (const Form& form : forms) {
    if (!fits(value, form.kind)) continue;
    if (!chosen) chosen = &form;
    if (value.is_array() && !value.empty() && fits_any(value[0], form.items)) return &form;
  }
  return chosen;
}

bool allowed(char c, Chars chars) {
  if (chars == Chars::kAny) return true;
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-')
    return true;
  return chars == Chars::kSession && (c == '.' || c == ':');
}

int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// An infinite one, which JSON cannot say, too.
std::string number_text(const Json& value) {
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : to_text(value);
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "'" : ", '") + word + "'";
  return out;
}

// At most 64 bytes of it, whole characters.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 64;
  if (text.size() <= kMost) return std::string(text);
  size_t end = kMost;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

const Field* find_field(const FieldsPtr& fields, std::string_view name) {
  if (!fields) return nullptr;
  for (const Field& field : *fields)
    if (field.name == name) return &field;
  return nullptr;
}

std::string sentence(std::string first, const std::string& hint) {
  return hint.empty() ? first : first + ": " + hint;
}

}  // namespace

std::string Path::text() const {
  std::string out = above ? above->text() : "";
  if (index >= 0) return out + "[" + std::to_string(index) + "]";
  if (!out.empty() && !key.empty()) out += '.';
  return out + std::string(key);
}

// Each function says whether all was well; what was not has been told to the check.
class Walk {
 public:
  explicit Walk(Check& check) : check_(check) {}

  bool value(const Json& value, const Forms& forms, const Path& path) {
    if (forms.empty()) return true;
    const Form* form = choose(value, forms);
    if (!form) {
      return fault(Step::kTypes, "invalid_type", path,
                   [&] { return fmt::format("must be {}, not {}", kinds_of(forms), found_kind(value)); });
    }
    switch (form->kind) {
      case Kind::kBoolean:
        return true;
      case Kind::kInteger:
        return integer(value, *form, path);
      case Kind::kNumber:
        return number(value.get<double>(), *form, path);
      case Kind::kString:
        return string(value.get_ref<const std::string&>(), *form, path);
      case Kind::kArray:
        return array(value, *form, path);
      case Kind::kObject:
        return form->fields ? object(value, *form, path) : map(value, *form, path);
    }
    return true;
  }

  bool object(const Json& object, const Form& form, const Path& path) {
    if (!decided(object, form, path)) return false;
    const FieldsPtr own = variant(object, form);
    bool well = complete(object, form.fields, path);
    if (own && !complete(object, own, path)) well = false;
    for (const auto& [name, item] : object.items()) {
      const Field* field = find_field(own, name);
      if (!field) field = find_field(form.fields, name);
      const Path at{&path, name};
      if (!field || field->stand == Field::Stand::kElsewhere) {
        if (!unknown(field, at)) well = false;
      } else if (!item.is_null() && !(field->decides || one(item, *field, at))) {
        well = false;
      } else if (!item.is_null() && !beside(object, *field, path)) {
        well = false;
      }
    }
    return well;
  }

 private:
  template <class Message>
  bool fault(Step step, std::string_view code, const Path& path, Message&& message) {
    if (check_.wants(step)) {
      std::string where = path.text();
      std::string text = fmt::format("'{}' {}", shown(where), message());
      check_.fault(step, code, std::move(where), std::move(text));
    }
    return false;
  }

  bool integer(const Json& value, const Form& form, const Path& path) {
    const bool is_float = value.is_number_float();
    const double wide = value.get<double>();
    const bool above =
        is_float ? wide >= kTwo63 : value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    // An integer below -2^63 was read as a float, which may have been rounded to just that.
    const bool below = is_float && wide <= -kTwo63;
    if (above || (!below && value.get<int64_t>() > form.most)) {
      return fault(Step::kRanges, "integer_above_max_value", path, [&] {
        return fmt::format("is {}, the greatest value allowed is {}", number_text(value), form.most);
      });
    }
    if (!below && value.get<int64_t>() >= form.least) return true;
    return fault(Step::kRanges, "integer_below_min_value", path, [&] {
      return fmt::format("is {}, the least value allowed is {}", number_text(value), form.least);
    });
  }

  bool number(double value, const Form& form, const Path& path) {
    if (value > form.high) {
      return fault(Step::kRanges, "decimal_above_max_value", path,
                   [&] { return fmt::format("is {}, the greatest value allowed is {}", value, form.high); });
    }
    // Samplers take floats, for which a value just above an open end is the end itself.
    if (form.open_low ? static_cast<float>(value) > form.low : value >= form.low) return true;
    return fault(Step::kRanges, "decimal_below_min_value", path, [&] {
      return fmt::format("is {}, it must be {} {}", value, form.open_low ? "above" : "at least", form.low);
    });
  }

  bool string(const std::string& text, const Form& form, const Path& path) {
    if (!form.words.empty() || !form.refused.empty()) return word(text, form, path);
    const int64_t size = form.characters ? characters(text) : static_cast<int64_t>(text.size());
    const bool foreign =
        std::any_of(text.begin(), text.end(), [&](char c) { return !allowed(c, form.chars); });
    if (form.chars == Chars::kName && (foreign || size < form.least || size > form.most)) {
      return fault(Step::kRanges, "invalid_value", path, [&] {
        return fmt::format("is '{}', it must be {} to {} of the characters A-Z a-z 0-9 _ -", shown(text),
                           form.least, form.most);
      });
    }
    if (size < form.least)
      return fault(Step::kRanges, "empty_string", path, [] { return std::string("must not be empty"); });
    if (size > form.most) {
      return fault(Step::kRanges, "string_above_max_length", path, [&] {
        return fmt::format("has {} {}, at most {} are allowed", size,
                           form.characters ? "characters" : "bytes", form.most);
      });
    }
    if (!foreign) return true;
    return fault(Step::kRanges, "invalid_value", path, [&] {
      return fmt::format("is '{}', it must consist of the characters A-Z a-z 0-9 . _ : -", shown(text));
    });
  }

  bool word(const std::string& text, const Form& form, const Path& path) {
    const auto in = [&](const std::vector<std::string>& list) {
      return std::ranges::find(list, text) != list.end();
    };
    if (in(form.words)) return true;
    const bool known = in(form.refused);
    return fault(Step::kRanges, known ? "unsupported_value" : "invalid_value", path, [&] {
      return fmt::format("is '{}'{}; {} allowed", shown(text), known ? ", which is not supported here" : "",
                         joined_words(form.words) + (form.words.size() == 1 ? " is" : " are"));
    });
  }

  bool array(const Json& value, const Form& form, const Path& path) {
    const auto size = static_cast<int64_t>(value.size());
    bool well = true;
    if (size < form.least)
      well = fault(Step::kRanges, "empty_array", path, [] { return std::string("must not be empty"); });
    if (size > form.most) {
      well = fault(Step::kRanges, "array_above_max_length", path,
                   [&] { return fmt::format("has {} items, at most {} are allowed", size, form.most); });
    }
    for (int64_t i = 0; i < size; ++i)
      if (!this->value(value[static_cast<size_t>(i)], form.items, {&path, {}, i})) well = false;
    return well;
  }

  bool map(const Json& value, const Form& form, const Path& path) {
    bool well = true;
    if (static_cast<int64_t>(value.size()) > form.most) {
      well = fault(Step::kRanges, "array_above_max_length", path, [&] {
        return fmt::format("has {} pairs, at most {} are allowed", value.size(), form.most);
      });
    }
    for (const auto& [key, item] : value.items()) {
      const Path at{&path, key};
      if (characters(key) > form.longest_key) {
        well = fault(Step::kRanges, "string_above_max_length", at, [&, &key = key] {
          return fmt::format("is a key of {} characters, at most {} are allowed", characters(key),
                             form.longest_key);
        });
      }
      if (!this->value(item, form.values, at)) well = false;
    }
    return well;
  }

  // Whether the fields that decide what else the object may hold are there and right.
  bool decided(const Json& object, const Form& form, const Path& path) {
    bool well = true;
    for (const Field& field : *form.fields) {
      if (!field.decides) continue;
      const Json* item = present(object, field.name);
      if (item ? !one(*item, field, {&path, field.name}) : field.required && !missing(field, path))
        well = false;
    }
    return well;
  }

  static FieldsPtr variant(const Json& object, const Form& form) {
    if (form.variants.empty()) return nullptr;
    const Json* word = present(object, form.selector);
    if (!word) return form.variants[0].fields;
    for (const Form::Variant& v : form.variants)
      if (*word == v.word) return v.fields;
    return nullptr;
  }

  bool missing(const Field& field, const Path& path) {
    const Path at{&path, field.name};
    return fault(Step::kRequired, "missing_required_parameter", at,
                 [] { return std::string("is required"); });
  }

  bool complete(const Json& object, const FieldsPtr& fields, const Path& path) {
    bool well = true;
    for (const Field& field : *fields)
      if (field.required && !field.decides && !present(object, field.name)) well = missing(field, path);
    return well;
  }

  bool unknown(const Field* field, const Path& at) {
    if (check_.warn_unknown_) {
      if (check_.ignored_.size() < kMaxIgnored) check_.ignored_.push_back(at.text());
      return true;
    }
    return fault(Step::kTypes, "unknown_parameter", at,
                 [&] { return sentence("is not known to this route", field ? field->about : ""); });
  }

  bool one(const Json& item, const Field& field, const Path& at) {
    if (field.stand == Field::Stand::kUnsupported) {
      return fault(Step::kTypes, "unsupported_parameter", at,
                   [&] { return sentence("is not supported", field.about); });
    }
    if (field.stand == Field::Stand::kHonoured) return value(item, field.forms, at);
    const auto same = [&](const Json& only) { return only == item; };
    if (std::any_of(field.only.begin(), field.only.end(), same)) return true;
    const bool worded = !field.forms.empty() && !field.forms[0].words.empty();
    if (worded || !fits_any(item, field.forms)) return value(item, field.forms, at);
    return fault(Step::kRanges, field.code, at, [&] {
      std::vector<std::string> values;
      for (const Json& only : field.only) values.push_back(to_text(only));
      return sentence(fmt::format("takes no other value than {} here", fmt::join(values, " or ")),
                      field.about);
    });
  }

  // Whether an alias stands alone.
  bool beside(const Json& object, const Field& field, const Path& path) {
    if (field.alias_of.empty()) return true;
    const Json* other = present(object, field.alias_of);
    if (!other || (field.may_repeat && *other == object[field.name])) return true;
    const Path at{&path, field.name};
    return fault(Step::kContradictions, "invalid_value", at, [&] {
      return fmt::format("means the same as '{}': give one of them{}", field.alias_of,
                         field.may_repeat ? ", or equal values" : "");
    });
  }

  Check& check_;
};

void Check::body(const Json& body, const Fields& fields) {
  if (!body.is_object()) {
    fault(Step::kRequired, "invalid_type", std::nullopt,
          fmt::format("the body must be a JSON object, not {}", found_kind(body)));
    return;
  }
  Form form;
  form.kind = Kind::kObject;
  form.fields = FieldsPtr(&fields, [](const Fields*) {});
  Walk(*this).object(body, form, {});
}

void Check::fault(Step step, std::string_view code, Param param, std::string message) {
  if (!wants(step)) return;
  found_ = bad(code, std::move(param), std::move(message));
  found_step_ = step;
}

void Check::finish() const {
  if (found_) throw *found_;
}

}  // namespace juno::server
