// SPDX-License-Identifier: Apache-2.0
// Where a text stands in a grammar, byte after byte.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton.h"

namespace juno::grammar {

// What to come back to: the node after a call, or a loop and how many rounds it has done.
struct Frame {
  static constexpr int32_t kCall = -1;
  NodeId node;
  int32_t rounds;  // kCall: it is no loop
  bool fresh;      // no byte was read since it was entered
  bool operator==(const Frame&) const = default;
};

// One way to read the text so far: it waits for a byte at `node`, or has ended (node kEnded, empty stack).
struct Thread {
  static constexpr NodeId kEnded = -1;
  NodeId node = kEnded;
  std::vector<Frame> stack;
  bool operator==(const Thread&) const = default;
};

// All ways to read the text so far; none: the text does not begin any text of the grammar. A value of its
// own: copies are independent.
struct State {
  std::vector<Thread> threads;
  bool dead() const { return threads.empty(); }
  bool complete() const;  // the text may end here
  bool operator==(const State&) const = default;
};

class Matcher {
 public:
  // More ways at once than this, and step() throws Error: such a grammar is too ambiguous.
  static constexpr size_t kMaxThreads = 1024;

  explicit Matcher(const Automaton& automaton) : automaton_(automaton) {}

  State start() const;
  State step(const State& state, uint8_t byte) const;
  State read(State state, std::string_view text) const;
  bool matches(std::string_view text) const { return read(start(), text).complete(); }

  // The same state for all that follows within `bytes` bytes: counts that are further than that from their
  // limits are made equal.
  State nearby(State state, int bytes) const;

 private:
  class Closure;
  const Automaton& automaton_;
};

// A text that only equal states share.
std::string key_of(const State& state);

}  // namespace juno::grammar
