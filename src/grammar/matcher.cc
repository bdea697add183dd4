// SPDX-License-Identifier: Apache-2.0
#include "grammar/matcher.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"

namespace juno::grammar {
namespace {

void append(std::string& key, int32_t value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append(std::string& key, const Thread& thread) {
  append(key, thread.node);
  append(key, static_cast<int32_t>(thread.stack.size()));
  for (const Frame& f : thread.stack) {
    append(key, f.node);
    append(key, f.rounds * 2 + f.fresh);
  }
}

// A byte was read: from the top down to the first frame that knows already.
void settle(std::vector<Frame>& stack) {
  for (size_t i = stack.size(); i-- > 0 && stack[i].fresh;) stack[i].fresh = false;
}

}  // namespace

using Kind = Node::Kind;

bool State::complete() const {
  return std::any_of(threads.begin(), threads.end(),
                     [](const Thread& t) { return t.node == Thread::kEnded; });
}

// Follows everything that needs no byte.
class Matcher::Closure {
 public:
  explicit Closure(const Automaton& automaton) : automaton_(automaton) {}

  void add(Thread thread) {
    open_.push_back(std::move(thread));
    while (!open_.empty()) {
      Thread t = std::move(open_.back());
      open_.pop_back();
      visit(std::move(t));
    }
  }

  State take() {
    std::sort(keyed_.begin(), keyed_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    State state;
    for (auto& [key, thread] : keyed_) state.threads.push_back(std::move(thread));
    return state;
  }

 private:
  void visit(Thread t) {
    const Node& n = automaton_.nodes[t.node];
    if (!n.productive) return;
    std::string key;
    append(key, t);
    if (!seen_.insert(key).second) return;
    if (seen_.size() > 16 * kMaxThreads || keyed_.size() > kMaxThreads)
      fail(Code::kFailed, "[grammar] more than {} ways to read the text so far", kMaxThreads);
    switch (n.kind) {
      case Kind::kBytes:
        keyed_.emplace_back(std::move(key), std::move(t));
        return;
      case Kind::kSplit:
        open_.push_back({n.b, t.stack});
        t.node = n.a;
        break;
      case Kind::kCall:
        if (automaton_.nodes[n.b].kind != Kind::kReturn) t.stack.push_back({n.b, Frame::kCall, true});
        t.node = automaton_.rules[n.a];
        break;
      case Kind::kLoop:
        return round(std::move(t), 0);
      case Kind::kReturn:
        return leave(std::move(t));
    }
    open_.push_back(std::move(t));
  }

  // At a loop (t.node) that has done `rounds`: once more, or on.
  void round(Thread t, int32_t rounds) {
    const NodeId loop = t.node;
    const Node& n = automaton_.nodes[loop];
    if (rounds >= n.min) open_.push_back({n.b, t.stack});
    if (n.max != kUnlimited && rounds >= n.max) return;
    t.stack.push_back({loop, n.max == kUnlimited ? std::min(rounds, n.min) : rounds, true});
    t.node = n.a;
    open_.push_back(std::move(t));
  }

  void leave(Thread t) {
    if (t.stack.empty()) {
      if (seen_.insert(std::string()).second) keyed_.emplace_back(std::string(), Thread{});
      return;
    }
    const Frame top = t.stack.back();
    t.stack.pop_back();
    t.node = top.node;
    const Node& n = automaton_.nodes[top.node];
    if (top.rounds == Frame::kCall) return open_.push_back(std::move(t));
    if (!(top.fresh && n.nullable)) round(std::move(t), top.rounds + 1);
  }

  const Automaton& automaton_;
  std::vector<Thread> open_;
  std::unordered_set<std::string> seen_;
  std::vector<std::pair<std::string, Thread>> keyed_;
};

State Matcher::start() const {
  Closure closure(automaton_);
  closure.add({automaton_.rules[0], {}});
  return closure.take();
}

State Matcher::step(const State& state, uint8_t byte) const {
  Closure closure(automaton_);
  for (const Thread& t : state.threads) {
    if (t.node == Thread::kEnded) continue;
    const Node& n = automaton_.nodes[t.node];
    if (!automaton_.classes[n.a][byte]) continue;
    Thread next{n.b, t.stack};
    settle(next.stack);
    closure.add(std::move(next));
  }
  return closure.take();
}

State Matcher::read(State state, std::string_view text) const {
  for (size_t i = 0; i < text.size() && !state.dead(); ++i)
    state = step(state, static_cast<uint8_t>(text[i]));
  return state;
}

State Matcher::nearby(State state, int bytes) const {
  for (Thread& t : state.threads) {
    for (Frame& f : t.stack) {
      const Node& n = automaton_.nodes[f.node];
      if (f.rounds == Frame::kCall) continue;
      if (f.rounds < n.min) {
        if (n.min - f.rounds > bytes) f.rounds = 0;
      } else if (n.max != kUnlimited && n.max - f.rounds > bytes) {
        f.rounds = n.min;
      }
    }
  }
  return state;
}

std::string key_of(const State& state) {
  std::string key;
  for (const Thread& t : state.threads) append(key, t);
  return key;
}

}  // namespace juno::grammar
