// SPDX-License-Identifier: Apache-2.0
// Comparison and arithmetic, as Python has them for the types of JSON.
#include "tokenizer/jinja_operators.h"

#include <cmath>

namespace juno::tokenizer::jinja {

namespace {

[[noreturn]] void fail_operands(Interpreter& in, std::string_view sign, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b}) {
    if (auto* u = v->get<Undefined>()) in.fail("{}", *u->why);
  }
  in.fail("'{}' is not defined for {} and {}", sign, type_name(a), type_name(b));
}

[[noreturn]] void fail_overflow(Interpreter& in) { in.fail("a number does not fit into 64 bits"); }

bool same_kind(const List& a, const List& b) { return a.kind == b.kind; }

}  // namespace

bool equal(Interpreter& in, const Value& a, const Value& b) {
  Interpreter::Depth deeper(in);
  if (a.integer() && b.integer()) return *a.integer() == *b.integer();
  if (a.number() && b.number()) return *a.number() == *b.number();
  if (a.text() && b.text()) {
    in.work(a.text()->size());
    return a.text()->bytes() == b.text()->bytes();
  }
  if (a.list() && b.list()) {
    if (a.list() == b.list()) return true;
    const auto &x = a.list()->items, &y = b.list()->items;
    if (!same_kind(*a.list(), *b.list()) || x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!equal(in, x[i], y[i])) return false;
    }
    return true;
  }
  if (a.dict() && b.dict()) {
    if (a.dict()->size() != b.dict()->size()) return false;
    for (const auto& [key, value] : a.dict()->items()) {
      const Value* other = b.dict()->find(key);
      if (!other || !equal(in, value, *other)) return false;
    }
    return true;
  }
  if (a.object() || b.object()) return a.object() == b.object();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

bool less(Interpreter& in, const Value& a, const Value& b) {
  Interpreter::Depth deeper(in);
  if (a.integer() && b.integer()) return *a.integer() < *b.integer();
  if (a.number() && b.number()) return *a.number() < *b.number();
  if (a.text() && b.text()) {
    in.work(a.text()->size());
    return a.text()->bytes() < b.text()->bytes();  // UTF-8 sorts as its code points do
  }
  if (a.list() && b.list() && same_kind(*a.list(), *b.list())) {
    const auto &x = a.list()->items, &y = b.list()->items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(in, x[i], y[i])) return less(in, x[i], y[i]);
    }
    return x.size() < y.size();
  }
  fail_operands(in, "<", a, b);
}

bool contains(Interpreter& in, const Value& needle, const Value& container) {
  if (auto* t = container.text()) {
    if (!needle.text()) in.fail("'in' needs a str to look for in a str, not a {}", type_name(needle));
    in.work(t->size());
    return t->bytes().find(needle.text()->bytes()) != std::string::npos;
  }
  if (auto* d = container.dict()) return d->find(needle) != nullptr;
  if (!container.list() && !container.is_undefined())
    in.fail("'in' needs something to look in, not a {}", type_name(container));
  for (const Value& item : iterate(in, container)) {
    if (equal(in, item, needle)) return true;
  }
  return false;
}

Value add(Interpreter& in, const Value& a, const Value& b) {
  if (a.text() && b.text()) {
    in.room(a.text()->size() + b.text()->size());
    Text out = *a.text();
    out.append(*b.text());
    return in.text(std::move(out));
  }
  if (a.integer() && b.integer()) {
    int64_t sum = 0;
    if (__builtin_add_overflow(*a.integer(), *b.integer(), &sum)) fail_overflow(in);
    return sum;
  }
  if (a.number() && b.number()) return *a.number() + *b.number();
  if (a.list() && b.list() && same_kind(*a.list(), *b.list()) && a.list()->kind <= ListKind::kTuple) {
    List* out = in.new_list(a.list()->kind, a.list()->items);
    for (const Value& item : std::vector<Value>(b.list()->items)) in.push(*out, item);
    return out;
  }
  fail_operands(in, "+", a, b);
}

Value subtract(Interpreter& in, const Value& a, const Value& b) {
  if (a.integer() && b.integer()) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(*a.integer(), *b.integer(), &difference)) fail_overflow(in);
    return difference;
  }
  if (a.number() && b.number()) return *a.number() - *b.number();
  fail_operands(in, "-", a, b);
}

Value multiply(Interpreter& in, const Value& a, const Value& b) {
  if (a.integer() && b.integer()) {
    int64_t product = 0;
    if (__builtin_mul_overflow(*a.integer(), *b.integer(), &product)) fail_overflow(in);
    return product;
  }
  if (a.number() && b.number()) return *a.number() * *b.number();
  const Value &repeated = a.integer() ? b : a, &count = a.integer() ? a : b;
  if (!count.integer()) fail_operands(in, "*", a, b);
  size_t n = static_cast<size_t>(std::max<int64_t>(*count.integer(), 0)), total;
  if (auto* t = repeated.text()) {
    if (__builtin_mul_overflow(n, t->size(), &total)) in.fail("a text would be too long");
    in.room(total);
    Text out;
    for (size_t i = 0; total && i < n; ++i) out.append(*t);
    return in.text(std::move(out));
  }
  List* l = repeated.list();
  if (!l || l->kind > ListKind::kTuple) fail_operands(in, "*", a, b);
  List* out = in.new_list(l->kind);
  const std::vector<Value> items = l->items;
  for (size_t i = 0; !items.empty() && i < n; ++i) {
    for (const Value& item : items) {
      in.spend(1);
      in.push(*out, item);
    }
  }
  return out;
}

Value divide(Interpreter& in, const Value& a, const Value& b) {
  if (!a.number() || !b.number()) fail_operands(in, "/", a, b);
  if (*b.number() == 0) in.fail("division by zero");
  return *a.number() / *b.number();
}

namespace {

double float_modulo(double a, double b) {
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace

Value floor_divide(Interpreter& in, const Value& a, const Value& b) {
  if (!a.number() || !b.number()) fail_operands(in, "//", a, b);
  if (*b.number() == 0) in.fail("division by zero");
  if (!a.integer() || !b.integer()) {
    double x = *a.number(), y = *b.number();
    return std::round((x - float_modulo(x, y)) / y);
  }
  int64_t x = *a.integer(), y = *b.integer();
  if (y == -1) return subtract(in, int64_t{0}, x);
  return x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
}

Value modulo(Interpreter& in, const Value& a, const Value& b) {
  if (a.text()) {
    Args args;
    if (b.list() && b.list()->kind == ListKind::kTuple) {
      args.positional = b.list()->items;
    } else {
      args.positional.push_back(b);
    }
    return percent_format(in, *a.text(), args);
  }
  if (!a.number() || !b.number()) fail_operands(in, "%", a, b);
  if (*b.number() == 0) in.fail("division by zero");
  if (!a.integer() || !b.integer()) return float_modulo(*a.number(), *b.number());
  int64_t x = *a.integer(), y = *b.integer();
  if (y == -1) return int64_t{0};
  int64_t r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

Value power(Interpreter& in, const Value& a, const Value& b) {
  if (!a.number() || !b.number()) fail_operands(in, "**", a, b);
  if (!a.integer() || !b.integer() || *b.integer() < 0) {
    if (*a.number() == 0 && *b.number() < 0) in.fail("division by zero");
    if (*a.number() < 0 && std::floor(*b.number()) != *b.number())
      in.fail("the power would be a complex number");
    return std::pow(*a.number(), *b.number());
  }
  int64_t base = *a.integer(), result = 1;
  for (int64_t e = *b.integer(); e > 0; e >>= 1) {
    bool overflow = (e & 1) && __builtin_mul_overflow(result, base, &result);
    if (e > 1) overflow |= __builtin_mul_overflow(base, base, &base);
    if (overflow) fail_overflow(in);
  }
  return result;
}

Value negate(Interpreter& in, const Value& v) {
  if (v.integer()) return subtract(in, int64_t{0}, v);
  if (!v.number()) fail_operands(in, "-", v, v);
  return -*v.number();
}

Value plus(Interpreter& in, const Value& v) {
  if (v.integer()) return *v.integer();
  if (!v.number()) fail_operands(in, "+", v, v);
  return *v.number();
}

}  // namespace juno::tokenizer::jinja
