// SPDX-License-Identifier: Apache-2.0
#include "grammar/number_range.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

namespace juno::grammar {
namespace {

Bytes digits(int first, int last) {
  Bytes set;
  for (int d = first; d <= last; ++d) set.set('0' + d);
  return set;
}

NodeId some_digits(Builder& to, int32_t min, int32_t max, NodeId next) {
  return to.repeat([&](NodeId then) { return to.bytes(digits(0, 9), then); }, min, max, next);
}

int compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int c = a.whole.compare(b.whole)) return c;
  return a.fraction.compare(b.fraction);  // no trailing zeros: a longer one is larger
}

// The next whole number away from zero.
std::string grown(std::string whole) {
  for (size_t i = whole.size(); i-- > 0;) {
    if (whole[i]++ != '9') return whole;
    whole[i] = '0';
  }
  return '1' + whole;
}

std::string shrunk(std::string whole) {
  for (size_t i = whole.size(); i-- > 0;) {
    if (whole[i]-- != '0') break;
    whole[i] = '9';
  }
  const size_t first = whole.find_first_not_of('0');
  return first == std::string::npos ? "0" : whole.substr(first);
}

// The nearest integer inside the bound, inclusive. `upward`: of a lower bound.
Bound to_integer(const Bound& bound, bool upward) {
  Decimal d = bound.at;
  const bool outward = upward != d.negative;  // away from zero is into the range
  if (!d.fraction.empty()) {
    d.fraction.clear();
    if (outward) d.whole = grown(d.whole);
  } else if (bound.exclusive) {
    if (d.zero()) {
      d = {.negative = !upward, .whole = "1"};
    } else {
      d.whole = outward ? grown(d.whole) : shrunk(d.whole);
    }
  }
  if (d.whole == "0") d.negative = false;
  return {d, false};
}

// Magnitudes between two bounds that are not negative; no `high`: all above.
class Magnitudes {
 public:
  Magnitudes(Builder& to, const Bound& low, const std::optional<Bound>& high, bool integers, NodeId next)
      : to_(to),
        low_(low),
        high_(high),
        integers_(integers),
        next_(next),
        low_digits_(low.at.whole + low.at.fraction),
        high_digits_(high ? high->at.whole + high->at.fraction : "") {}

  NodeId build() {
    const size_t shortest = low_.at.whole.size();
    const size_t longest = high_ ? high_->at.whole.size() : shortest;
    NodeId all = to_.never();
    for (size_t n = shortest; n <= longest; ++n) {
      whole_ = n;
      memo_.clear();
      all = to_.either(at(0, n == shortest, high_ && n == longest), all);
    }
    if (high_) return all;
    const NodeId rest = some_digits(to_, static_cast<int32_t>(shortest), kUnlimited, fraction_or_end());
    return to_.either(to_.bytes(digits(1, 9), rest), all);
  }

 private:
  using Key = std::tuple<size_t, bool, bool>;

  static char digit(const std::string& of, size_t at) { return at < of.size() ? of[at] : '0'; }
  static bool zeros(const std::string& of, size_t from) {
    return from >= of.size() || of.find_first_not_of('0', from) == std::string::npos;
  }

  // With `position` digits written: the number may end. low, high: they are those of that bound so far.
  bool may_end(size_t position, bool low, bool high) const {
    if (low && (!zeros(low_digits_, position) || low_.exclusive)) return false;
    return !(high && zeros(high_digits_, position) && high_->exclusive);
  }

  NodeId fraction_or_end() {
    if (integers_) return next_;
    return to_.either(next_, to_.literal(".", some_digits(to_, 1, kUnlimited, next_)));
  }

  NodeId at(size_t position, bool low, bool high) {
    const bool bounds_end =
        (!low || position >= low_digits_.size()) && (!high || position >= high_digits_.size());
    if (position > whole_ && bounds_end) return tail(low, high);
    if (position == whole_ && !low && !high) return fraction_or_end();
    if (const auto found = memo_.find({position, low, high}); found != memo_.end()) return found->second;
    const NodeId end = position >= whole_ && may_end(position, low, high) ? next_ : to_.never();
    NodeId more = position < whole_ || !integers_ ? one_more(position, low, high) : to_.never();
    if (position == whole_ && more != to_.never()) more = to_.literal(".", more);
    return memo_[{position, low, high}] = to_.either(end, more);
  }

  // Digits of the fraction after those of the bounds that still hold.
  NodeId tail(bool low, bool high) {
    const auto any = [&](NodeId next) { return some_digits(to_, 0, kUnlimited, next); };
    const auto zeros = [&](NodeId next) {
      return to_.repeat([&](NodeId then) { return to_.literal("0", then); }, 0, kUnlimited, next);
    };
    if (high) return high_->exclusive || (low && low_.exclusive) ? to_.never() : zeros(next_);
    if (!low || !low_.exclusive) return any(next_);
    return zeros(to_.bytes(digits(1, 9), any(next_)));
  }

  NodeId one_more(size_t position, bool low, bool high) {
    const bool leading = position == 0 && whole_ > 1;
    const int from = low ? digit(low_digits_, position) - '0' : leading ? 1 : 0;
    const int until = high ? digit(high_digits_, position) - '0' : 9;
    NodeId all = to_.never();
    int inside_from = from, inside_until = until;
    if (low) {
      all = to_.either(edge(from, position, true, high && from == until), all);
      ++inside_from;
    }
    if (high && !(low && from == until)) {
      if (until >= from) all = to_.either(edge(until, position, false, true), all);
      --inside_until;
    }
    if (inside_from <= inside_until)
      all = to_.either(to_.bytes(digits(inside_from, inside_until), at(position + 1, false, false)), all);
    return all;
  }

  NodeId edge(int d, size_t position, bool low, bool high) {
    const NodeId then = at(position + 1, low, high);
    return then == to_.never() ? then : to_.bytes(digits(d, d), then);
  }

  Builder& to_;
  const Bound low_;
  const std::optional<Bound> high_;
  const bool integers_;
  const NodeId next_;
  const std::string low_digits_, high_digits_;
  size_t whole_ = 0;  // digits before the point
  std::map<Key, NodeId> memo_;
};

NodeId any_number(Builder& to, bool integers, NodeId next) {
  if (!integers) {
    const NodeId power = some_digits(to, 1, 3, next);
    const NodeId sign = to.either(to.bytes(Bytes().set('+').set('-'), power), power);
    const NodeId exponent = to.either(next, to.bytes(Bytes().set('e').set('E'), sign));
    next = to.either(exponent, to.literal(".", some_digits(to, 1, kUnlimited, exponent)));
  }
  const NodeId magnitude =
      to.either(to.literal("0", next), to.bytes(digits(1, 9), some_digits(to, 0, kUnlimited, next)));
  return to.either(magnitude, to.literal("-", magnitude));
}

}  // namespace

std::optional<Decimal> Decimal::parse(std::string_view text) {
  Decimal d;
  if (text.starts_with('-')) {
    d.negative = true;
    text.remove_prefix(1);
  }
  int exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc()) return {};
    text = text.substr(0, e);
  }
  const size_t point = text.find('.');
  std::string all(text.substr(0, point));
  int whole = static_cast<int>(all.size()) + exponent;
  if (point != std::string_view::npos) all += text.substr(point + 1);
  if (std::abs(exponent) > kMaxDigits || all.size() > kMaxDigits) return {};
  if (whole < 1) {
    all.insert(0, static_cast<size_t>(1 - whole), '0');
    whole = 1;
  }
  if (all.size() < static_cast<size_t>(whole)) all.resize(static_cast<size_t>(whole), '0');
  d.whole = all.substr(0, static_cast<size_t>(whole));
  d.fraction = all.substr(static_cast<size_t>(whole));
  d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size() - 1));
  d.fraction.erase(d.fraction.find_last_not_of('0') + 1);
  if (d.zero()) d.negative = false;
  return d;
}

int Decimal::compare(const Decimal& other) const {
  if (negative != other.negative) return negative ? -1 : 1;
  const int c = compare_magnitudes(*this, other);
  return negative ? -c : c;
}

bool NumberRange::empty() const {
  if (!low || !high) return false;
  const Bound from = integers ? to_integer(*low, true) : *low;
  const Bound until = integers ? to_integer(*high, false) : *high;
  const int c = from.at.compare(until.at);
  return c > 0 || (c == 0 && (from.exclusive || until.exclusive));
}

NodeId json_number(Builder& to, const NumberRange& range, NodeId next) {
  if (!range.bounded()) return any_number(to, range.integers, next);
  if (range.empty()) return to.never();
  std::optional<Bound> low = range.low, high = range.high;
  if (range.integers && low) low = to_integer(*low, true);
  if (range.integers && high) high = to_integer(*high, false);

  NodeId all = to.never();
  if (!high || !high->at.negative) {  // zero and what is above it
    const Bound from = low && !low->at.negative ? *low : Bound{};
    all = Magnitudes(to, from, high, range.integers, next).build();
  }
  if (!low || low->at.negative) {  // below zero
    const auto mirrored = [](Bound b) {
      b.at.negative = false;
      return b;
    };
    const Bound from = high && high->at.negative ? mirrored(*high) : Bound{.at = {}, .exclusive = true};
    const Bound least = range.integers && from.exclusive ? Bound{{.whole = "1"}, false} : from;
    const std::optional<Bound> until = low ? std::optional(mirrored(*low)) : std::nullopt;
    all = to.either(to.literal("-", Magnitudes(to, least, until, range.integers, next).build()), all);
  }
  return all;
}

}  // namespace juno::grammar
