// SPDX-License-Identifier: Apache-2.0
// The dialects of replies in which marks tell reasoning, content and calls apart: all but harmony.
#pragma once
#include <memory>
#include <string_view>

#include "dialect/call_form.h"
#include "dialect/dialect.h"

namespace juno::dialect {

// Trigger and open come before the first call, between between two, close after the last. Blanks in them are
// what models write; a reader takes any.
struct Calls {
  std::string_view trigger, open, between, close;
  std::shared_ptr<const CallForm> form;  // null: no calls
  bool single = false;                   // the template knows but one call a reply
  // A reply is a call when it begins with one, whether the trigger comes first or not; nowhere else.
  bool at_start = false;
};

struct Marks {
  std::string_view open, close;
};

struct MarkedDialect {
  std::string_view name;
  Calls calls;
  Marks reasoning;  // empty: none
  Marks content;    // around the content, where there is one
};

std::unique_ptr<Dialect> make_marked(MarkedDialect what);

}  // namespace juno::dialect
