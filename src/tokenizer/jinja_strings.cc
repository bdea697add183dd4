// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja_strings.h"

#include <algorithm>

#include "tokenizer/jinja_operators.h"

namespace juno::tokenizer::jinja {

Text replace(Interpreter& in, const Text& s, const Text& old, const Text& fresh, int64_t count) {
  Text out;
  const std::string& bytes = s.bytes();
  size_t from = 0;
  in.work(bytes.size());
  auto put = [&](size_t upto, const Text& what) {
    in.room(out.size() + upto - from + what.size());
    out.append(s, from, upto);
    out.append(what);
    from = upto;
  };
  if (old.empty()) {  // between all characters and at both ends
    std::vector<size_t> at = char_offsets(bytes);
    for (size_t i = 0; i < at.size() && count != 0; ++i, --count) put(at[i], fresh);
  } else {
    for (size_t found; count != 0 && (found = bytes.find(old.bytes(), from)) != std::string::npos; --count) {
      put(found, fresh);
      from = found + old.size();
    }
  }
  put(bytes.size(), Text());
  return out;
}

namespace {

size_t skip(const std::string& s, size_t at, bool space) {
  while (at < s.size()) {
    size_t n = char_bytes(s, at);
    if (is_space(code_point(std::string_view(s).substr(at, n))) != space) break;
    at += n;
  }
  return at;
}

std::vector<Text> split_space(const Text& s, int64_t most) {
  std::vector<Text> out;
  size_t at = skip(s.bytes(), 0, true);
  while (at < s.size()) {
    if (most-- == 0) {
      out.push_back(s.cut(at, s.size()));
      break;
    }
    size_t end = skip(s.bytes(), at, false);
    out.push_back(s.cut(at, end));
    at = skip(s.bytes(), end, true);
  }
  return out;
}

// The runs of white space between words, from the right.
std::vector<Text> split_space_right(const Text& s, int64_t most) {
  std::vector<Text> out = split_space(s, -1);
  if (most < 0 || out.size() <= static_cast<size_t>(most)) return out;
  size_t end = strip_range(s.bytes(), Side::kRight, nullptr).end;
  for (int64_t i = 0; i < most; ++i) {
    end -= out[out.size() - 1 - static_cast<size_t>(i)].size();
    end = strip_range(std::string_view(s.bytes()).substr(0, end), Side::kRight, nullptr).end;
  }
  std::vector<Text> last(out.end() - most, out.end());
  if (end > 0) last.insert(last.begin(), s.cut(0, end));
  return last;
}

}  // namespace

std::vector<Text> split(Interpreter& in, const Text& s, const Text* separator, int64_t most) {
  in.work(s.size());
  if (!separator) return split_space(s, most);
  if (separator->empty()) in.fail("split() needs a separator that is not empty");
  std::vector<Text> out;
  size_t from = 0;
  for (size_t found; most != 0 && (found = s.bytes().find(separator->bytes(), from)) != std::string::npos;
       --most) {
    in.spend(1);
    out.push_back(s.cut(from, found));
    from = found + separator->size();
  }
  out.push_back(s.cut(from, s.size()));
  return out;
}

std::vector<Text> split_right(Interpreter& in, const Text& s, const Text* separator, int64_t most) {
  in.work(s.size());
  if (!separator) return split_space_right(s, most);
  if (separator->empty()) in.fail("rsplit() needs a separator that is not empty");
  std::vector<Text> out;
  size_t end = s.size();
  for (size_t found;
       most != 0 && end >= separator->size() &&
       (found = s.bytes().rfind(separator->bytes(), end - separator->size())) != std::string::npos;
       --most) {
    in.spend(1);
    out.push_back(s.cut(found + separator->size(), end));
    end = found;
  }
  out.push_back(s.cut(0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Text> split_lines(const Text& s, bool keep_ends) {
  constexpr std::string_view kEnds = "\n\r\v\f\x1c\x1d\x1e";
  std::vector<Text> out;
  const std::string& bytes = s.bytes();
  size_t from = 0;
  for (size_t at = 0, n; at < bytes.size(); at += n) {
    n = char_bytes(bytes, at);
    uint32_t code = code_point(std::string_view(bytes).substr(at, n));
    bool ends = (n == 1 && kEnds.find(bytes[at]) != std::string_view::npos) || code == 0x85 ||
                code == 0x2028 || code == 0x2029;
    if (!ends) continue;
    if (bytes[at] == '\r' && at + 1 < bytes.size() && bytes[at + 1] == '\n') n = 2;
    out.push_back(s.cut(from, keep_ends ? at + n : at));
    from = at + n;
  }
  if (from < bytes.size()) out.push_back(s.cut(from, bytes.size()));
  return out;
}

Text strip(const Text& s, Side side, const Text* chars) {
  auto kept = strip_range(s.bytes(), side, chars ? &chars->bytes() : nullptr);
  return s.cut(kept.begin, kept.end);
}

namespace {

// Each character through change(character, index), with its provenance.
template <class F>
Text map_chars(const Text& s, F&& change) {
  Text out;
  for (size_t at = 0, n, i = 0; at < s.size(); at += n, ++i) {
    n = char_bytes(s.bytes(), at);
    out.append(change(std::string_view(s.bytes()).substr(at, n), i), s.trusted_at(at));
  }
  return out;
}

// The first character of each word in upper case; starts(character) says whether the next one starts a word.
template <class F>
Text title_by(const Text& s, F&& starts) {
  bool first = true;
  return map_chars(s, [&](std::string_view c, size_t) {
    std::string changed = first ? to_upper(c) : to_lower(c);
    first = starts(code_point(c));
    return changed;
  });
}

}  // namespace

Text upper(const Text& s) {
  return map_chars(s, [](std::string_view c, size_t) { return to_upper(c); });
}

Text lower(const Text& s) {
  return map_chars(s, [](std::string_view c, size_t) { return to_lower(c); });
}

Text capitalize(const Text& s) {
  return map_chars(s, [](std::string_view c, size_t i) { return i ? to_lower(c) : to_upper(c); });
}

Text title(const Text& s) {
  return title_by(s, [](uint32_t code) { return !is_upper(code) && !is_lower(code); });
}

Text filter_title(const Text& s) {
  return title_by(s, [](uint32_t code) {
    return is_space(code) ||
           (code < 0x80 && std::string_view("-({[<").find(static_cast<char>(code)) != std::string_view::npos);
  });
}

Text pad(Interpreter& in, const Text& s, int64_t width, Side side, const Text& fill) {
  int64_t missing = std::max<int64_t>(width - static_cast<int64_t>(char_count(s.bytes())), 0);
  in.room(s.size() + static_cast<size_t>(missing) * fill.size());
  int64_t before = side == Side::kRight  ? missing
                   : side == Side::kLeft ? 0
                                         : missing / 2 + (missing & width & 1);
  Text out;
  for (int64_t i = 0; i < before; ++i) out.append(fill);
  out.append(s);
  for (int64_t i = before; i < missing; ++i) out.append(fill);
  return out;
}

Text join(Interpreter& in, const Text& separator, const std::vector<Text>& parts) {
  Text out;
  for (size_t i = 0; i < parts.size(); ++i) {
    in.room(out.size() + separator.size() + parts[i].size());
    if (i) out.append(separator);
    out.append(parts[i]);
  }
  return out;
}

// ---- formatting

namespace {

struct Directive {
  bool left = false, zero = false, sign = false;
  int64_t width = 0, precision = -1;
  char letter = 0;
};

int64_t digits(Interpreter& in, std::string_view s, size_t& at) {
  constexpr int64_t kMost = 100'000;
  int64_t n = 0;
  for (; at < s.size() && s[at] >= '0' && s[at] <= '9'; ++at) {
    n = n * 10 + s[at] - '0';
    if (n > kMost) in.fail("a number in a format is larger than {}", kMost);
  }
  return n;
}

Directive read_directive(Interpreter& in, std::string_view s, size_t& at) {
  Directive d;
  for (; at < s.size() && std::string_view("-0+").find(s[at]) != std::string_view::npos; ++at) {
    d.left |= s[at] == '-';
    d.zero |= s[at] == '0';
    d.sign |= s[at] == '+';
  }
  d.width = digits(in, s, at);
  if (at < s.size() && s[at] == '.') d.precision = digits(in, s, ++at);
  if (at >= s.size()) in.fail("a format ends in the middle of a directive");
  d.letter = s[at++];
  return d;
}

std::string format_number(Interpreter& in, const Directive& d, const Value& v) {
  if (!v.number()) in.fail("%{} needs a number, not a {}", d.letter, type_name(v));
  if (std::string_view("di").find(d.letter) != std::string_view::npos) {
    if (v.integer()) return fmt::format("{}", *v.integer());
    if (!(std::abs(*v.number()) < 9e18)) in.fail("a number does not fit into 64 bits");
    return fmt::format("{}", static_cast<int64_t>(*v.number()));
  }
  if (d.letter == 'x' || d.letter == 'X') {
    if (!v.integer()) in.fail("%{} needs an integer", d.letter);
    return d.letter == 'x' ? fmt::format("{:x}", *v.integer()) : fmt::format("{:X}", *v.integer());
  }
  int precision = static_cast<int>(std::min<int64_t>(d.precision < 0 ? 6 : d.precision, 300));
  if (d.letter == 'f') return fmt::format("{:.{}f}", *v.number(), precision);
  if (d.letter == 'e') return fmt::format("{:.{}e}", *v.number(), precision);
  if (d.letter == 'g') return fmt::format("{:.{}g}", *v.number(), std::max(precision, 1));
  in.fail("the format %{} is not known", d.letter);
}

Text format_one(Interpreter& in, const Directive& d, const Value& v) {
  Text body;
  if (d.letter == 's' || d.letter == 'r') {
    body = d.letter == 's' ? to_text(in, v) : to_repr(in, v);
    std::vector<size_t> at = char_offsets(body.bytes());
    if (d.precision >= 0 && static_cast<size_t>(d.precision) < at.size())
      body = body.cut(0, at[static_cast<size_t>(d.precision)]);
    return pad(in, body, d.width, d.left ? Side::kLeft : Side::kRight, Text(" "));
  }
  std::string number = format_number(in, d, v);
  std::string sign = number[0] == '-' ? "-" : d.sign ? "+" : "";
  if (number[0] == '-') number.erase(0, 1);
  if (d.zero && !d.left) {
    number =
        pad(in, Text(number), d.width - static_cast<int64_t>(sign.size()), Side::kRight, Text("0")).bytes();
  }
  return pad(in, Text(sign + number), d.width, d.left ? Side::kLeft : Side::kRight, Text(" "));
}

}  // namespace

Value percent_format(Interpreter& in, const Text& format, Args& args) {
  Text out;
  size_t next = 0, from = 0;
  std::string_view s = format.bytes();
  for (size_t at = s.find('%'); at != std::string_view::npos; at = s.find('%', at)) {
    out.append(format, from, at);
    from = at++;
    Directive d = read_directive(in, s, at);
    if (d.letter == '%') {
      out.append(format, from, from + 1);
    } else {
      if (next >= args.positional.size()) in.fail("a format has more directives than values");
      Text piece = format_one(in, d, args.positional[next++]);
      in.room(out.size() + piece.size());
      out.append(piece);
    }
    from = at;
  }
  if (next < args.positional.size()) in.fail("a format has fewer directives than values");
  out.append(format, from, format.size());
  return in.text(std::move(out));
}

// "{}", "{0}" and "{name}", without format specifications.
Text str_format(Interpreter& in, const Text& format, Args& args) {
  Text out;
  size_t next = 0;
  std::string_view s = format.bytes();
  for (size_t at = 0; at < s.size();) {
    bool doubled = at + 1 < s.size() && s[at + 1] == s[at];
    if (s[at] != '{' && s[at] != '}') {
      size_t end = std::min(s.find_first_of("{}", at), s.size());
      out.append(format, at, end);
      at = end;
    } else if (doubled) {
      out.append(format, at, at + 1);
      at += 2;
    } else {
      size_t end = s.find('}', at);
      if (s[at] == '}' || end == std::string_view::npos) in.fail("a single brace in a format");
      std::string_view name = s.substr(at + 1, end - at - 1);
      size_t digit_end = 0;
      int64_t index = digits(in, name, digit_end);
      const Value* v = nullptr;
      if (name.empty() || (digit_end == name.size())) {
        size_t i = name.empty() ? next++ : static_cast<size_t>(index);
        if (i < args.positional.size()) v = &args.positional[i];
      }
      for (const auto& [known, value] : args.named) {
        if (known == name) v = &value;
      }
      if (!v) in.fail("the format '{{{}}}' has no value, or is of a form that is not known", name);
      Text piece = to_text(in, *v);
      in.room(out.size() + piece.size());
      out.append(piece);
      at = end + 1;
    }
  }
  return out;
}

}  // namespace juno::tokenizer::jinja
