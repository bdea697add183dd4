// SPDX-License-Identifier: Apache-2.0
#include "grammar/automaton.h"

#include "grammar/fault.h"

namespace juno::grammar {

using Kind = Node::Kind;

Builder::Builder() {
  add({.kind = Kind::kReturn});
  bytes({}, end());
}

NodeId Builder::add(const Node& node) {
  if (automaton_.nodes.size() >= kMaxNodes)
    fail(Code::kBadData, "[grammar] more than {} states are needed", kMaxNodes);
  automaton_.nodes.push_back(node);
  return static_cast<NodeId>(automaton_.nodes.size() - 1);
}

NodeId Builder::bytes(const Bytes& which, NodeId next) {
  return add({.kind = Kind::kBytes, .a = class_of(which), .b = next});
}

int32_t Builder::class_of(const Bytes& which) {
  const auto [found, is_new] = class_ids_.try_emplace(which, static_cast<int32_t>(automaton_.classes.size()));
  if (is_new) automaton_.classes.push_back(which);
  return found->second;
}

NodeId Builder::literal(std::string_view text, NodeId next) {
  for (size_t i = text.size(); i-- > 0;) next = bytes(Bytes().set(static_cast<uint8_t>(text[i])), next);
  return next;
}

NodeId Builder::either(NodeId a, NodeId b) {
  if (a == never()) return b;
  if (b == never()) return a;
  return add({.kind = Kind::kSplit, .a = a, .b = b});
}

NodeId Builder::call(int rule, NodeId next) { return add({.kind = Kind::kCall, .a = rule, .b = next}); }

NodeId Builder::repeat(const Part& body, int32_t min, int32_t max, NodeId next) {
  if (max == 0) return next;
  if (min == 1 && max == 1) return body(next);
  if (min == 0 && max == 1) return either(body(next), next);
  if (min <= 1 && max == kUnlimited) {
    const NodeId again = add({.kind = Kind::kSplit, .b = next});
    const NodeId start = body(again);
    automaton_.nodes[again].a = start;
    return min == 0 ? again : start;
  }
  const NodeId start = body(end());
  return add({.kind = Kind::kLoop, .a = start, .b = next, .min = min, .max = max});
}

NodeId Builder::forward() { return add({.kind = Kind::kSplit, .a = never(), .b = never()}); }

int Builder::insert(const Automaton& part) {
  const auto first_node = static_cast<NodeId>(automaton_.nodes.size());
  const auto first_rule = static_cast<int>(automaton_.rules.size());
  std::vector<int32_t> classes;
  for (const Bytes& which : part.classes) classes.push_back(class_of(which));
  for (Node n : part.nodes) {
    if (n.kind == Kind::kBytes) n.a = classes[n.a];
    if (n.kind == Kind::kCall) n.a += first_rule;
    if (n.kind == Kind::kSplit || n.kind == Kind::kLoop) n.a += first_node;
    if (n.kind != Kind::kReturn) n.b += first_node;
    add(n);
  }
  for (const NodeId start : part.rules) automaton_.rules.push_back(start + first_node);
  return first_rule;
}

int Builder::add_rule() {
  automaton_.rules.push_back(-1);
  return static_cast<int>(automaton_.rules.size() - 1);
}

// Repeats a property of nodes until nothing changes. Nodes come after what follows them, so few rounds do.
template <class Test>
void Builder::spread(std::vector<bool>& marks, Test&& test) const {
  marks.assign(automaton_.nodes.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < marks.size(); ++i) {
      if (marks[i] || !test(automaton_.nodes[i])) continue;
      marks[i] = true;
      changed = true;
    }
  }
}

void Builder::mark_productive() {
  std::vector<bool> ends;
  spread(ends, [&](const Node& n) {
    switch (n.kind) {
      case Kind::kBytes:
        return automaton_.classes[n.a].any() && ends[n.b];
      case Kind::kSplit:
        return ends[n.a] || ends[n.b];
      case Kind::kCall:
        return ends[automaton_.rules[n.a]] && ends[n.b];
      case Kind::kLoop:
        return (n.min == 0 || ends[n.a]) && ends[n.b];
      case Kind::kReturn:
        break;
    }
    return true;
  });
  for (size_t i = 0; i < ends.size(); ++i) automaton_.nodes[i].productive = ends[i];
}

void Builder::mark_nullable() {
  spread(empty_, [&](const Node& n) {
    switch (n.kind) {
      case Kind::kBytes:
        return false;
      case Kind::kSplit:
        return empty_[n.a] || empty_[n.b];
      case Kind::kCall:
        return empty_[automaton_.rules[n.a]] && empty_[n.b];
      case Kind::kLoop:
        return (n.min == 0 || empty_[n.a]) && empty_[n.b];
      case Kind::kReturn:
        break;
    }
    return true;
  });
  for (Node& n : automaton_.nodes) {
    if (n.kind != Kind::kLoop || !empty_[n.a]) continue;
    n.nullable = true;
    n.min = 0;  // the same texts: empty rounds make up for missing ones
  }
}

// A rule that reaches itself before a byte would be entered for ever.
void Builder::refuse_left_recursion() const {
  const size_t rules = automaton_.rules.size();
  std::vector<std::vector<int>> begins(rules);  // the rules that a rule may begin with
  std::vector<int> seen(automaton_.nodes.size(), -1);
  for (size_t r = 0; r < rules; ++r) {
    std::vector<NodeId> open{automaton_.rules[r]};
    const auto visit = [&](NodeId id) {
      if (std::exchange(seen[id], static_cast<int>(r)) != static_cast<int>(r)) open.push_back(id);
    };
    while (!open.empty()) {
      const Node& n = automaton_.nodes[open.back()];
      open.pop_back();
      if (n.kind == Kind::kBytes || n.kind == Kind::kReturn) continue;
      if (n.kind == Kind::kCall) {
        begins[r].push_back(n.a);
        if (empty_[automaton_.rules[n.a]]) visit(n.b);
        continue;
      }
      visit(n.a);
      if (n.kind == Kind::kSplit || n.min == 0 || n.nullable) visit(n.b);
    }
  }
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(rules, kNew);
  std::vector<std::pair<int, size_t>> path;
  for (size_t r = 0; r < rules; ++r) {
    if (state[r] == kNew) path.emplace_back(static_cast<int>(r), 0);
    while (!path.empty()) {
      auto& [rule, next] = path.back();
      state[rule] = kOpen;
      if (next == begins[rule].size()) {
        state[rule] = kDone;
        path.pop_back();
        continue;
      }
      const int to = begins[rule][next++];
      if (state[to] == kOpen) throw Fault(Refusal::kInvalidGrammar, "[grammar] a rule begins with itself");
      if (state[to] == kNew) path.emplace_back(to, 0);
    }
  }
}

Automaton Builder::finish() {
  for (NodeId& start : automaton_.rules) {
    if (start < 0) start = never();
  }
  mark_productive();
  mark_nullable();
  refuse_left_recursion();
  if (!automaton_.nodes[automaton_.rules[0]].productive)
    throw Fault(Refusal::kInvalidGrammar, "[grammar] no text fits it");
  return std::move(automaton_);
}

}  // namespace juno::grammar
