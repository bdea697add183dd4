// SPDX-License-Identifier: Apache-2.0
#include "server/json.h"

#include <cmath>
#include <limits>
#include <unordered_set>
#include <vector>

#include "server/refusal.h"

namespace juno::server {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kNumberOverflow = 406;  // nlohmann's id of that error

Refusal invalid(const std::string& why) {
  return bad("invalid_json", std::nullopt, "the body is not valid JSON: " + why);
}

bool in_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

// Calls on_bracket(at) and on_number(first, last) for what stands outside of strings.
template <class OnBracket, class OnNumber>
void scan(std::string_view text, OnBracket&& on_bracket, OnNumber&& on_number) {
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const size_t first = at;
      while (at + 1 < text.size() && in_number(text[at + 1])) ++at;
      on_number(first, at + 1);
    } else if (c == '{' || c == '[' || c == '}' || c == ']') {
      on_bracket(at);
    }
  }
}

// Where the level begins that is one too many.
size_t too_deep_at(std::string_view text) {
  int depth = 0;
  size_t found = text.size();
  scan(
      text,
      [&](size_t at) {
        depth += text[at] == '{' || text[at] == '[' ? 1 : -1;
        if (depth > kMaxJsonDepth && at < found) found = at;
      },
      [](size_t, size_t) {});
  return found;
}

// Builds the value without recursion and without searching an object's keys.
class Builder {
 public:
  // large: which of the text's numbers, counted from 0, no double holds.
  explicit Builder(std::string_view text, const std::unordered_set<size_t>& large)
      : text_(text), large_(large) {}

  Json take() { return std::move(root_); }
  bool overflowed() const { return overflowed_; }

  bool null() { return put(nullptr); }
  bool boolean(bool v) { return put(v); }
  bool number_integer(int64_t v) { return number(v); }
  bool number_unsigned(uint64_t v) { return number(v); }
  bool number_float(double v, const std::string&) { return number(v); }
  bool string(std::string& v) { return put(std::move(v)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!levels_.back().keys.insert(name).second)
      throw invalid("the key '" + name + "' stands twice in one object");
    levels_.back().key = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const Json::exception& why) {
    overflowed_ = why.id == kNumberOverflow;
    if (overflowed_) return false;
    const bool ended = position > text_.size();
    throw invalid((ended ? "it ends too early, at byte " : "it breaks at byte ") +
                  std::to_string(ended           ? text_.size()
                                 : position == 0 ? 0
                                                 : position - 1) +
                  (ended || token.empty()
                       ? ""
                       : ", near '" + token.substr(token.size() > 32 ? token.size() - 32 : 0) + "'"));
  }

 private:
  struct Level {
    Json* value;
    std::unordered_set<std::string> keys;
    std::string key;
  };

  template <class T>
  bool number(T v) {
    const bool large = large_.count(numbers_++) > 0;
    if constexpr (std::is_same_v<T, double>) return put(large ? std::copysign(kInfinity, v) : v);
    else return put(v);
  }

  Json* add(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    using Pairs = std::vector<std::pair<const std::string, Json>>;
    auto& pairs = static_cast<Pairs&>(level.value->get_ref<Json::object_t&>());  // its emplace() would search
    pairs.emplace_back(std::move(level.key), std::move(value));
    return &pairs.back().second;
  }

  bool put(Json value) {
    add(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (levels_.size() == kMaxJsonDepth) {
      throw invalid("it is nested more than " + std::to_string(kMaxJsonDepth) + " deep at byte " +
                    std::to_string(too_deep_at(text_)));
    }
    levels_.push_back({add(std::move(value)), {}, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::unordered_set<size_t>& large_;
  size_t numbers_ = 0;
  Json root_;
  std::vector<Level> levels_;
  bool overflowed_ = false;
};

// Nothing where a number was met that no double holds.
std::optional<Json> build(std::string_view text, const std::unordered_set<size_t>& large) {
  Builder builder(text, large);
  if (!Json::sax_parse(text.begin(), text.end(), &builder) && builder.overflowed()) return std::nullopt;
  return builder.take();
}

// The reader stops at such numbers: 1e308, which is never longer than they are, takes their place.
Json build_with_large_numbers(std::string text) {
  std::unordered_set<size_t> large;
  size_t numbers = 0;
  const std::string original = text;
  scan(
      original, [](size_t) {},
      [&](size_t first, size_t last) {
        const std::string number(original, first, last - first);
        if (std::isinf(std::strtod(number.c_str(), nullptr))) {
          std::string other = number[0] == '-' ? "-1e308" : "1e308";
          other.resize(number.size(), ' ');
          text.replace(first, number.size(), other);
          large.insert(numbers);
        }
        ++numbers;
      });
  auto out = build(text, large);
  if (!out) throw invalid("a number is too large");
  return std::move(*out);
}

}  // namespace

Json read_json(std::string_view text) {
  if (auto out = build(text, {})) return std::move(*out);
  return build_with_large_numbers(std::string(text));
}

const Json* present(const Json& object, const std::string& name) {
  const auto at = object.find(name);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

bool has_infinity(const Json& value) {
  if (value.is_number_float()) return std::isinf(value.get<double>());
  if (!value.is_structured()) return false;
  for (const Json& item : value)
    if (has_infinity(item)) return true;
  return false;
}

std::string to_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace juno::server
