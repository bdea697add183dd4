// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja_text.h"

#include <algorithm>
#include <iterator>

namespace juno::tokenizer::jinja {

bool Text::trusted_at(size_t byte) const {
  auto after = std::upper_bound(untrusted_.begin(), untrusted_.end(), byte,
                                [](size_t at, const Range& r) { return at < r.begin; });
  return after == untrusted_.begin() || std::prev(after)->end <= byte;
}

void Text::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (trusted) return;
  if (!untrusted_.empty() && untrusted_.back().end == begin) {
    untrusted_.back().end = bytes_.size();
  } else {
    untrusted_.push_back({begin, bytes_.size()});
  }
}

void Text::append(const Text& other, size_t begin, size_t end) {
  if (begin >= end) return;
  auto range = std::lower_bound(other.untrusted_.begin(), other.untrusted_.end(), begin,
                                [](const Range& r, size_t at) { return r.end <= at; });
  size_t at = begin;
  for (; range != other.untrusted_.end() && range->begin < end; ++range) {
    size_t from = std::max(range->begin, begin), to = std::min(range->end, end);
    append(std::string_view(other.bytes_).substr(at, from - at), true);
    append(std::string_view(other.bytes_).substr(from, to - from), false);
    at = to;
  }
  append(std::string_view(other.bytes_).substr(at, end - at), true);
}

Text Text::cut(size_t begin, size_t end) const {
  Text out;
  out.append(*this, begin, end);
  return out;
}

size_t char_bytes(std::string_view s, size_t at) {
  auto byte = static_cast<unsigned char>(s[at]);
  size_t n = byte < 0xC2 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 1;
  if (n > s.size() - at) return 1;
  for (size_t i = 1; i < n; ++i) {
    if ((static_cast<unsigned char>(s[at + i]) & 0xC0) != 0x80) return 1;
  }
  return n;
}

size_t char_count(std::string_view s) {
  size_t n = 0;
  for (size_t at = 0; at < s.size(); at += char_bytes(s, at)) ++n;
  return n;
}

std::vector<size_t> char_offsets(std::string_view s) {
  std::vector<size_t> out;
  for (size_t at = 0; at < s.size(); at += char_bytes(s, at)) out.push_back(at);
  out.push_back(s.size());
  return out;
}

uint32_t code_point(std::string_view c) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(c[i]) & 0x3Fu; };
  auto first = static_cast<unsigned char>(c[0]);
  if (c.size() == 2) return (first & 0x1Fu) << 6 | byte(1);
  if (c.size() == 3) return (first & 0x0Fu) << 12 | byte(1) << 6 | byte(2);
  if (c.size() == 4) return (first & 0x07u) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3);
  return first < 0x80 ? first : 0xDC00u + first;  // a stray byte, where Python puts it
}

namespace {

struct Span {
  uint32_t first, last;
};
// From first to last in steps of stride: code + delta is the other case.
struct CaseSpan {
  uint32_t first, last, stride;
  int32_t delta;
};
#include "tokenizer/jinja_unicode.inc"

template <size_t N>
bool in_spans(const Span (&spans)[N], uint32_t code) {
  auto span = std::upper_bound(std::begin(spans), std::end(spans), code,
                               [](uint32_t c, const Span& s) { return c < s.first; });
  return span != std::begin(spans) && code <= std::prev(span)->last;
}

template <size_t N>
uint32_t mapped(const CaseSpan (&spans)[N], uint32_t code) {
  auto span = std::upper_bound(std::begin(spans), std::end(spans), code,
                               [](uint32_t c, const CaseSpan& s) { return c < s.first; });
  // Spans with a stride may overlap their neighbours: look back over the few that can hold the code.
  for (int back = 0; back < 3 && span != std::begin(spans); ++back) {
    --span;
    if (code <= span->last && (code - span->first) % span->stride == 0) {
      return static_cast<uint32_t>(static_cast<int64_t>(code) + span->delta);
    }
  }
  return code;
}

template <size_t N>
std::string map_char(const CaseSpan (&spans)[N], std::string_view c) {
  if (c.size() == 1 && static_cast<unsigned char>(c[0]) >= 0x80) return std::string(c);
  std::string out;
  append_utf8(out, mapped(spans, code_point(c)));
  return out;
}

}  // namespace

bool is_space(uint32_t code) { return in_spans(kSpace, code); }
bool is_printable(uint32_t code) { return code < 0x7F ? code >= 0x20 : !in_spans(kNotPrintable, code); }
bool is_upper(uint32_t code) { return in_spans(kUpper, code); }
bool is_lower(uint32_t code) { return in_spans(kLower, code); }
bool is_alpha(uint32_t code) { return in_spans(kAlpha, code); }
std::string to_upper(std::string_view c) { return c == "ß" ? "SS" : map_char(kToUpper, c); }
std::string to_lower(std::string_view c) { return map_char(kToLower, c); }

Text::Range strip_range(std::string_view s, Side side, const std::string* chars) {
  auto strips = [&](size_t at, size_t n) {
    if (!chars) return is_space(code_point(s.substr(at, n)));
    // A character of `chars`, found at a character's start.
    for (size_t found = chars->find(s.data() + at, 0, n); found != std::string::npos;
         found = chars->find(s.data() + at, found + 1, n)) {
      if (char_bytes(*chars, found) == n) return true;
    }
    return false;
  };
  size_t begin = 0, end = s.size();
  while (side != Side::kRight && begin < end && strips(begin, char_bytes(s, begin))) {
    begin += char_bytes(s, begin);
  }
  while (side != Side::kLeft && end > begin) {
    size_t last = end - 1;
    while (last > begin && end - last < 4 && (static_cast<unsigned char>(s[last]) & 0xC0) == 0x80) --last;
    if (last + char_bytes(s, last) != end) last = end - 1;
    if (!strips(last, end - last)) break;
    end = last;
  }
  return {begin, end};
}

}  // namespace juno::tokenizer::jinja
