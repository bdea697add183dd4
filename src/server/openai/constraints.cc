// SPDX-License-Identifier: Apache-2.0
#include "server/openai/constraints.h"

#include "grammar/fault.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"
#include "server/refusal.h"

namespace juno::server {

using grammar::Automaton;

namespace {

// Reads the beginnings of some texts: a grammar that is too ambiguous to be followed fails here, before
// anything runs, and not in the middle of a reply.
void try_out(const Automaton& automaton) {
  constexpr std::string_view kBeginnings = "\"{[a1-";
  constexpr int kDeep = 4;
  const grammar::Matcher matcher(automaton);
  std::vector<grammar::State> states{matcher.start()};
  for (int depth = 0; depth < kDeep; ++depth) {
    std::vector<grammar::State> next;
    for (const grammar::State& state : states) {
      for (const char c : kBeginnings) {
        if (auto after = matcher.step(state, static_cast<uint8_t>(c)); !after.dead())
          next.push_back(std::move(after));
      }
    }
    constexpr size_t kMany = 16;
    if (next.size() > kMany) next.resize(kMany);
    states = std::move(next);
  }
}

}  // namespace

Automaton compiled(const std::string& param, const std::function<Automaton()>& compile) {
  try {
    Automaton automaton = compile();
    try_out(automaton);
    return automaton;
  } catch (const grammar::Fault& fault) {
    const char* code = fault.refusal == grammar::Refusal::kInvalidGrammar  ? "invalid_grammar"
                       : fault.refusal == grammar::Refusal::kInvalidSchema ? "invalid_json_schema"
                                                                           : "unsupported_json_schema";
    throw bad(code, param, fault.message);
  } catch (const Error& e) {  // it outgrew a limit, which the message names
    throw bad("unsupported_json_schema", param, e.message);
  }
}

Automaton compile_schema(const Json& schema, const std::string& param) {
  if (has_infinity(schema))
    throw bad("invalid_json_schema", param, "the schema holds a number that no double holds");
  return compiled(param, [&] { return grammar::compile_json_schema(to_text(schema)); });
}

Automaton compile_grammar(const std::string& gbnf, const std::string& param) {
  try {
    return compiled(param, [&] { return grammar::compile_gbnf(gbnf); });
  } catch (Refusal& why) {
    why.code = "invalid_grammar";
    throw;
  }
}

Automaton either(const Automaton& a, const Automaton& b) {
  grammar::Builder to;
  const int whole = to.add_rule();
  const auto one = [&](const Automaton& part) { return to.call(to.insert(part), to.end()); };
  to.define(whole, to.either(one(a), one(b)));
  return to.finish();
}

}  // namespace juno::server
