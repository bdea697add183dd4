// SPDX-License-Identifier: Apache-2.0
#include "grammar/free_text.h"

#include <array>
#include <functional>
#include <map>
#include <vector>

namespace juno::grammar {
namespace {

using Table = std::vector<std::array<size_t, 256>>;

// [bytes of the mark that were just read][byte] -> the same, after it.
Table steps_of(std::string_view mark) {
  Table steps(mark.size());
  size_t border = 0;  // the state of the longest proper border of what was read
  for (size_t i = 0; i < mark.size(); ++i) {
    const auto here = static_cast<uint8_t>(mark[i]);
    if (i == 0) {
      steps[0].fill(0);
    } else {
      steps[i] = steps[border];
      border = steps[border][here];
    }
    steps[i][here] = i + 1;
  }
  return steps;
}

}  // namespace

NodeId text_until(Builder& to, std::string_view mark, Ending ending, NodeId next) {
  const Table steps = steps_of(mark);
  std::vector<NodeId> states;
  for (size_t i = 0; i < mark.size(); ++i) states.push_back(to.forward());
  NodeId after = next;
  for (size_t i = mark.size(); i-- > 0;) {
    std::map<size_t, Bytes> ways;
    for (size_t byte = 0; byte < 256; ++byte) ways[steps[i][byte]].set(byte);
    NodeId state = ending == Ending::kAnyTime ? to.end() : to.never();
    for (const auto& [target, bytes] : ways)
      state = to.either(to.bytes(bytes, target == i + 1 ? after : states[target]), state);
    to.settle(states[i], state);
    after = state;
  }
  return after;
}

NodeId text_unless(Builder& to, const std::vector<std::string_view>& heads) {
  const NodeId anything =
      to.repeat([&](NodeId then) { return to.bytes(Bytes().set(), then); }, 0, kUnlimited, to.end());
  // By what was read of a head; the longest first, so that what follows is built already.
  std::map<std::string_view, NodeId, std::greater<>> begun;
  for (const std::string_view head : heads) {
    for (size_t i = 0; i < head.size(); ++i) begun[head.substr(0, i)];
  }
  for (auto& [read, state] : begun) {
    Bytes others = Bytes().set();
    state = to.end();
    for (const std::string_view head : heads) {
      if (!head.starts_with(read) || head == read || !others[static_cast<uint8_t>(head[read.size()])])
        continue;
      others.reset(static_cast<uint8_t>(head[read.size()]));
      const auto further = begun.find(head.substr(0, read.size() + 1));
      const Bytes here = Bytes().set(static_cast<uint8_t>(head[read.size()]));
      if (further != begun.end()) state = to.either(to.bytes(here, further->second), state);
    }
    state = to.either(to.bytes(others, anything), state);
  }
  return begun.at("");
}

}  // namespace juno::grammar
