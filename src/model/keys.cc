// SPDX-License-Identifier: Apache-2.0
#include "model/keys.h"

#include <cmath>

namespace juno::model {
namespace {

constexpr size_t kMostNames = 100;

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kMostNames; ++i) {
    if (i) text += separator;
    text += parts[i];
  }
  if (parts.size() > kMostNames) text += fmt::format("{}and {} more", separator, parts.size() - kMostNames);
  return text;
}

}  // namespace

void Faults::add(std::string_view name, std::string sentence) {
  if (names_.emplace(name).second) sentences_.push_back(std::move(sentence));
}

void Faults::raise(const std::string& file) const {
  if (!sentences_.empty()) fail(Code::kBadData, "[model] {}: {}", file, joined(sentences_, "; "));
}

std::string listed(const std::vector<std::string>& names) { return joined(names, ", "); }

Keys::Keys(const gguf::Metadata& metadata, std::string_view architecture, Faults& faults)
    : metadata_(metadata), prefix_(std::string(architecture) + "."), faults_(faults) {}

void Keys::fault(std::string_view key, std::string_view sentence) {
  faults_.add(full(key), fmt::format("{} {}", full(key), sentence));
}

void Keys::refuse(std::string_view key, std::string_view sentence) {
  if (find(key, false)) fault(key, sentence);
}

const gguf::Value* Keys::find(std::string_view key, bool required) {
  asked_.insert(full(key));
  const gguf::Value* value = metadata_.find(full(key));
  if (!value && required) fault(key, "is missing");
  return value;
}

int64_t Keys::integer(std::string_view key, Range range) {
  return find(key, true) ? integer(key, range, 0) : range.least;
}

int64_t Keys::integer(std::string_view key, Range range, int64_t fallback) {
  const gguf::Value* value = find(key, false);
  if (!value) return fallback;
  const std::optional<int64_t> n = value->as<int64_t>();
  if (n && *n >= range.least && *n <= range.most) return *n;
  fault(key, fmt::format("is {} ({}), not an integer from {} to {}", gguf::shown(*value),
                         gguf::name_of(value->type), range.least, range.most));
  return range.least;
}

double Keys::positive(std::string_view key) { return find(key, true) ? positive(key, 0) : 1; }

double Keys::positive(std::string_view key, double fallback) {
  const gguf::Value* value = find(key, false);
  if (!value) return fallback;
  const std::optional<double> x = value->as<double>();
  if (x && std::isfinite(*x) && *x > 0) return *x;
  fault(key, fmt::format("is {} ({}), not a finite number above 0", gguf::shown(*value),
                         gguf::name_of(value->type)));
  return 1;
}

std::string Keys::text(std::string_view key) {
  const gguf::Value* value = find(key, false);
  if (!value) return "";
  if (const auto text = value->as<std::string>()) return *text;
  fault(key, fmt::format("is of type {}, not a string", gguf::name_of(value->type)));
  return "";
}

bool Keys::flag(std::string_view key, bool fallback) {
  const gguf::Value* value = find(key, false);
  if (!value) return fallback;
  if (const auto flag = value->as<bool>()) return *flag;
  fault(key, fmt::format("is of type {}, not a bool", gguf::name_of(value->type)));
  return fallback;
}

std::vector<bool> Keys::layers(std::string_view key, int count, int64_t fallback_period) {
  const gguf::Value* value = find(key, false);
  if (value && value->type == gguf::ValueType::kArray) {
    auto flags = value->as<std::vector<bool>>();
    if (flags && flags->size() == size_t(count)) return *flags;
    fault(key, fmt::format("holds {} items of type {}, not one bool for each of {} layers", value->count,
                           gguf::name_of(value->item), count));
  }
  const int64_t period = value ? integer(key, {1, 1 << 16}, 0) : fallback_period;
  std::vector<bool> flags(count);
  for (int i = 0; i < count; ++i) flags[i] = (i + 1) % period != 0;
  return flags;
}

}  // namespace juno::model
