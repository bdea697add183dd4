// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja_lexer.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/jinja_text.h"

namespace juno::tokenizer::jinja {

void fail_at(const std::string& name, Position at, const std::string& what) {
  fail(Code::kBadData, "[tokenizer] {}:{}:{}: {}", name, at.line, at.column, what);
}

namespace {

constexpr size_t kMaxSource = 1 << 20;  // bytes; the largest template known has 17 KB

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Every line end becomes \n; one at the very end goes.
std::string normalise_lines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    bool cr = source[i] == '\r';
    if (cr && i + 1 < source.size() && source[i + 1] == '\n') ++i;
    out += cr ? '\n' : source[i];
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string source, const std::string& name) : source_(std::move(source)), name_(name) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) data();
    push(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(const std::string& what) { fail_at(name_, position(), what); }

  Position position() {
    for (; counted_ < at_; ++counted_) {
      bool line_end = source_[counted_] == '\n';
      line_.column = line_end ? 1 : line_.column + 1;
      line_.line += line_end;
    }
    return line_;
  }

  void push(TokenType type, std::string text) { tokens_.push_back({type, std::move(text), position()}); }
  bool looking_at(std::string_view s) const { return source_.compare(at_, s.size(), s) == 0; }
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }

  void skip_space() {
    while (at_ < source_.size()) {
      size_t n = char_bytes(source_, at_);
      if (!is_space(code_point(std::string_view(source_).substr(at_, n)))) return;
      at_ += n;
    }
  }

  // Text up to the next tag, then the tag.
  void data() {
    size_t tag = source_.find('{', at_);
    while (tag != std::string::npos &&
           std::string_view("{%#").find(char_after(tag)) == std::string_view::npos) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string::npos) {
      push(TokenType::kData, source_.substr(at_));
      at_ = source_.size();
      return;
    }
    char kind = source_[tag + 1], sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (sign != '-' && sign != '+') sign = '\0';
    push_data(tag, kind == '{' ? '+' : sign, sign);
    at_ = tag;
    Position start = position();
    at_ += sign ? 3 : 2;
    if (kind == '#') return comment(start);
    if (kind == '%' && raw(start)) return;
    tokens_.push_back({kind == '%' ? TokenType::kBlockBegin : TokenType::kVariableBegin, "", start});
    tag_body(kind == '%', start);
  }

  char char_after(size_t at) const { return at + 1 < source_.size() ? source_[at + 1] : 'x'; }

  // The text from at_ to `end`, before a tag: "-" strips all white space, no sign what stands before it on
  // its line.
  void push_data(size_t end, char lstrip, char sign) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      text = text.substr(0, strip_range(text, Side::kRight, nullptr).end);
    } else if (lstrip != '+') {
      size_t newline = text.rfind('\n');
      size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      bool line_starts = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
      auto rest = strip_range(text.substr(line), Side::kLeft, nullptr);
      if (line_starts && rest.begin == text.size() - line) text = text.substr(0, line);
    }
    if (!text.empty()) push(TokenType::kData, std::string(text));
  }

  // The end of a comment, raw block or statement and the white space that goes with it; at_ is at `-` or the
  // end.
  bool tag_end(std::string_view end, bool trims, bool plus) {
    size_t sign = peek() == '-' || (plus && peek() == '+') ? 1 : 0;
    if (source_.compare(at_ + sign, end.size(), end) != 0) return false;
    bool minus = sign && peek() == '-';
    at_ += sign + end.size();
    if (minus) skip_space();
    if (!sign && trims && peek() == '\n') ++at_;
    return true;
  }

  void comment(Position start) {
    size_t end = source_.find("#}", at_);
    if (end == std::string::npos) fail_at(name_, start, "the comment has no end (\"#}\")");
    bool sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    at_ = sign ? end - 1 : end;
    tag_end("#}", true, true);
  }

  // True where the tag was {% raw %}: the text up to {% endraw %} is taken as it stands.
  bool raw(Position start) {
    size_t before = at_;
    skip_space();
    if (!looking_at("raw")) return at_ = before, false;
    at_ += 3;
    skip_space();
    if (!tag_end("%}", false, false)) return at_ = before, false;
    size_t body = at_;
    for (size_t tag = source_.find("{%", body); tag != std::string::npos; tag = source_.find("{%", tag + 2)) {
      at_ = tag + 2;
      char sign = peek() == '-' || peek() == '+' ? peek() : '\0';
      if (sign) ++at_;
      skip_space();
      if (!looking_at("endraw")) continue;
      at_ += 6;
      skip_space();
      if (!tag_end("%}", true, true)) continue;
      size_t next = at_;
      at_ = body;
      push_data(tag, sign, sign);
      at_ = next;
      return true;
    }
    fail_at(name_, start, "the raw block has no {% endraw %}");
  }

  void tag_body(bool block, Position start) {
    std::string_view end = block ? "%}" : "}}";
    std::vector<char> open;
    while (true) {
      skip_space();
      if (at_ >= source_.size()) fail_at(name_, start, "the tag has no end (\"" + std::string(end) + "\")");
      Position here = position();
      if (open.empty() && tag_end(end, block, block)) {
        tokens_.push_back({block ? TokenType::kBlockEnd : TokenType::kVariableEnd, "", here});
        return;
      }
      token(open);
    }
  }

  void token(std::vector<char>& open) {
    char c = peek();
    if (is_digit(c)) return number();
    if (c == '"' || c == '\'') return string(c);
    if (is_word(c)) {
      size_t end = at_;
      while (end < source_.size() && is_word(source_[end])) ++end;
      push(TokenType::kName, source_.substr(at_, end - at_));
      at_ = end;
      return;
    }
    for (std::string_view two : {"//", "**", "==", "!=", ">=", "<="}) {
      if (!looking_at(two)) continue;
      push(TokenType::kOperator, std::string(two));
      at_ += 2;
      return;
    }
    if (std::string_view("+-/*%~[](){}<>=.:|,;").find(c) == std::string_view::npos) {
      fail_here("unexpected character in an expression");
    }
    balance(c, open);
    push(TokenType::kOperator, std::string(1, c));
    ++at_;
  }

  void balance(char c, std::vector<char>& open) {
    if (c == '(') open.push_back(')');
    if (c == '[') open.push_back(']');
    if (c == '{') open.push_back('}');
    if (c != ')' && c != ']' && c != '}') return;
    if (open.empty() || open.back() != c) fail_here(std::string("unexpected '") + c + "'");
    open.pop_back();
  }

  // Digits with single underscores between; the end of them.
  size_t digits(size_t from) const {
    size_t end = from;
    while (end < source_.size() &&
           (is_digit(source_[end]) ||
            (source_[end] == '_' && end > from && end + 1 < source_.size() && is_digit(source_[end + 1]))))
      ++end;
    return end;
  }

  void number() {
    size_t end = digits(at_);
    bool real = false, after_dot = at_ > 0 && source_[at_ - 1] == '.';
    auto digit_at = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
    if (!after_dot && end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      real = true;
      end = digits(end + 1);
    }
    if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t power = end + 1;
      if (power < source_.size() && (source_[power] == '+' || source_[power] == '-')) ++power;
      if (digit_at(power)) {
        real = true;
        end = digits(power);
      }
    }
    if (end < source_.size() && is_word(source_[end])) fail_here("a number of a form that is not known");
    std::string text = source_.substr(at_, end - at_);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    push(real ? TokenType::kFloat : TokenType::kInteger, text);
    at_ = end;
  }

  void string(char quote) {
    Position start = position();
    std::string value;
    for (++at_; peek() != quote || at_ >= source_.size();) {
      if (at_ >= source_.size()) fail_at(name_, start, "the string has no end");
      if (peek() == '\\') {
        escape(value);
      } else {
        value += source_[at_++];
      }
    }
    ++at_;
    tokens_.push_back({TokenType::kString, std::move(value), start});
  }

  void escape(std::string& value) {
    constexpr std::string_view kLetters = "\\'\"abfnrtv", kValues = "\\'\"\a\b\f\n\r\t\v";
    char c = peek(1);
    if (at_ + 1 >= source_.size()) fail_here("the string has no end");
    if (size_t i = kLetters.find(c); i != std::string_view::npos) {
      value += kValues[i];
      at_ += 2;
    } else if (c == '\n') {
      at_ += 2;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      code_escape(value, 16, 2, c == 'x' ? 2 : c == 'u' ? 4 : 8, true);
    } else if (c >= '0' && c <= '7') {
      code_escape(value, 8, 1, 3, false);
    } else if (c == 'N') {
      fail_here("characters by name (\\N) are not known");
    } else {
      value += '\\';
      ++at_;
    }
  }

  void code_escape(std::string& value, uint32_t base, size_t skip, size_t most, bool all) {
    uint32_t code = 0;
    size_t n = 0;
    for (; n < most; ++n) {
      char c = peek(skip + n);
      uint32_t digit = is_digit(c)            ? c - '0'
                       : c >= 'a' && c <= 'f' ? c - 'a' + 10u
                       : c >= 'A' && c <= 'F' ? c - 'A' + 10u
                                              : 99u;
      if (digit >= base) break;
      code = code * base + digit;
    }
    if ((all && n < most) || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      fail_here("an escape that is no character");
    append_utf8(value, code);
    at_ += skip + n;
  }

  std::string source_;
  const std::string& name_;
  std::vector<Token> tokens_;
  size_t at_ = 0, counted_ = 0;
  Position line_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, const std::string& name) {
  if (source.size() > kMaxSource) {
    fail(Code::kBadData, "[tokenizer] {}: the template has {} bytes, the limit is {}", name, source.size(),
         kMaxSource);
  }
  if (!is_utf8(source)) fail(Code::kBadData, "[tokenizer] {}: the template is not UTF-8", name);
  return Lexer(normalise_lines(source), name).run();
}

}  // namespace juno::tokenizer::jinja
