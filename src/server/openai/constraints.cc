// SPDX-License-Identifier: Apache-2.0
#include "server/openai/constraints.h"

#include "grammar/fault.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "server/refusal.h"

namespace juno::server {

using grammar::Automaton;
using grammar::Node;

Automaton compiled(const std::string& param, const std::function<Automaton()>& compile) {
  try {
    return compile();
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

Automaton either(Automaton a, const Automaton& b) {
  const auto nodes = static_cast<int32_t>(a.nodes.size());
  const auto classes = static_cast<int32_t>(a.classes.size());
  const auto rules = static_cast<int32_t>(a.rules.size());
  for (Node node : b.nodes) {
    if (node.a >= 0)
      node.a += node.kind == Node::Kind::kBytes ? classes : node.kind == Node::Kind::kCall ? rules : nodes;
    if (node.b >= 0) node.b += nodes;
    a.nodes.push_back(node);
  }
  a.classes.insert(a.classes.end(), b.classes.begin(), b.classes.end());
  for (const auto rule : b.rules) a.rules.push_back(rule < 0 ? rule : rule + nodes);
  Node split;
  split.kind = Node::Kind::kSplit;
  split.productive = true;
  split.a = a.rules[0], split.b = a.rules[static_cast<size_t>(rules)];
  // Calls of the first rule from inside of `a` must keep their meaning.
  for (Node& node : a.nodes)
    if (node.kind == Node::Kind::kCall && node.a == 0) node.a = static_cast<int32_t>(a.rules.size());
  a.rules.push_back(a.rules[0]);
  a.rules[0] = static_cast<int32_t>(a.nodes.size());
  a.nodes.push_back(split);
  return a;
}

}  // namespace juno::server
