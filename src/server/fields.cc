// SPDX-License-Identifier: Apache-2.0
#include "server/fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace juno::server {
namespace {

Form of(Kind kind) {
  Form form;
  form.kind = kind;
  return form;
}

Field named(std::string name, Forms forms, std::string about) {
  Field field;
  field.name = std::move(name);
  field.forms = std::move(forms);
  field.about = std::move(about);
  return field;
}

}  // namespace

Forms boolean() { return {of(Kind::kBoolean)}; }

Forms integer(int64_t least, int64_t most) {
  Form form = of(Kind::kInteger);
  form.least = least, form.most = most;
  return {form};
}

Forms number(double low, double high) {
  Form form = of(Kind::kNumber);
  form.low = low, form.high = high;
  return {form};
}

Forms number_above(double low, double high) {
  Forms forms = number(low, high);
  forms[0].open_low = true;
  return forms;
}

Forms text(int64_t least, int64_t most) { return text_of(Chars::kAny, least, most); }

Forms text_of(Chars chars, int64_t least, int64_t most) {
  Form form = of(Kind::kString);
  form.least = least, form.most = most, form.chars = chars;
  return {form};
}

Forms words(std::vector<std::string> words, std::vector<std::string> refused) {
  Form form = of(Kind::kString);
  form.words = std::move(words), form.refused = std::move(refused);
  return {form};
}

Forms list(Forms items, int64_t least, int64_t most) {
  Form form = of(Kind::kArray);
  form.items = std::move(items), form.least = least, form.most = most;
  return {form};
}

Forms object(Fields fields) {
  Form form = of(Kind::kObject);
  form.fields = std::make_shared<const Fields>(std::move(fields));
  return {form};
}

Forms variants(Fields fields, std::string selector, std::vector<std::pair<std::string, Fields>> by_word) {
  Forms forms = object(std::move(fields));
  forms[0].selector = std::move(selector);
  for (auto& [word, own] : by_word)
    forms[0].variants.push_back({word, std::make_shared<const Fields>(std::move(own))});
  return forms;
}

Forms map(Forms values) {
  Form form = of(Kind::kObject);
  form.values = std::move(values);
  return {form};
}

Forms either(Forms a, const Forms& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Field required(std::string name, Forms forms, std::string about) {
  Field field = named(std::move(name), std::move(forms), std::move(about));
  field.required = true;
  return field;
}

Field optional(std::string name, Forms forms, std::string fallback, std::string about) {
  Field field = named(std::move(name), std::move(forms), std::move(about));
  field.fallback = std::move(fallback);
  return field;
}

Field alias(std::string name, std::string of, Forms forms, std::string about) {
  Field field = named(std::move(name), std::move(forms), std::move(about));
  field.alias_of = std::move(of);
  return field;
}

Field no_op(std::string name, Forms forms, std::vector<Json> only, std::string about) {
  Field field = named(std::move(name), std::move(forms), std::move(about));
  field.stand = Field::Stand::kNoOp;
  field.only = std::move(only);
  return field;
}

Field unsupported(std::string name, std::string hint) {
  Field field = named(std::move(name), {}, std::move(hint));
  field.stand = Field::Stand::kUnsupported;
  return field;
}

Field elsewhere(std::string name, std::string route) {
  Field field = named(std::move(name), {}, std::move(route));
  field.stand = Field::Stand::kElsewhere;
  return field;
}

Field deciding(Field field) {
  field.decides = true;
  return field;
}

Fields joined(Fields a, const Fields& b) {
  const size_t own = a.size();
  for (const Field& field : b) {
    const auto same = [&](const Field& mine) { return mine.name == field.name; };
    if (std::none_of(a.begin(), a.begin() + static_cast<ptrdiff_t>(own), same)) a.push_back(field);
  }
  return a;
}

const Json* Values::find(std::string_view name) const {
  if (std::ranges::none_of(fields_, [&](const Field& field) {
        return field.name == name && field.stand != Field::Stand::kElsewhere;
      }))
    return nullptr;  // served without it
  const std::string sent = sent_as(name);
  const auto at = object_.find(sent);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::string Values::sent_as(std::string_view name) const {
  const auto present = [&](const std::string& key) {
    const auto at = object_.find(key);
    return at != object_.end() && !at->is_null();
  };
  std::string main(name);
  if (present(main)) return main;
  for (const Field& field : fields_)
    if (field.alias_of == name && present(field.name)) return field.name;
  return main;
}

bool Values::flag(std::string_view name, bool fallback) const {
  const Json* value = find(name);
  return value ? value->get<bool>() : fallback;
}

std::optional<int64_t> Values::integer(std::string_view name) const {
  const Json* value = find(name);
  return value ? std::optional(value->get<int64_t>()) : std::nullopt;
}

std::optional<double> Values::number(std::string_view name) const {
  const Json* value = find(name);
  return value ? std::optional(value->get<double>()) : std::nullopt;
}

std::optional<std::string> Values::text(std::string_view name) const {
  const Json* value = find(name);
  return value ? std::optional(value->get<std::string>()) : std::nullopt;
}

}  // namespace juno::server
