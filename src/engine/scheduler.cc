// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>

namespace juno::engine {

Scheduler::Scheduler(KvPool& pool, const Limits& limits) : pool_(pool), limits_(limits) {
  running_.reserve(static_cast<size_t>(limits.sequences));
  pieces_.reserve(static_cast<size_t>(limits.sequences));
}

void Scheduler::add(Sequence& sequence) { waiting_.push_back(&sequence); }

void Scheduler::remove(Sequence& sequence) {
  std::erase(waiting_, &sequence);
  std::erase(running_, &sequence);
}

std::span<const Piece> Scheduler::next() {
  admit();
  pieces_.clear();
  int64_t budget = limits_.tokens;
  const auto give = [&](Sequence* s, State state) {
    const int64_t left = static_cast<int64_t>(s->tokens.size()) - s->stored;
    const int64_t count = std::min(budget, left);
    if (s->state != state || count == 0) return;
    pieces_.push_back({s, s->stored, count});
    budget -= count;
  };
  for (Sequence* s : running_) give(s, State::kDecode);
  for (Sequence* s : running_) give(s, State::kPrefill);
  return pieces_;
}

void Scheduler::admit() {
  while (!waiting_.empty() && running_.size() < static_cast<size_t>(limits_.sequences)) {
    Sequence& s = *waiting_.front();
    const int wanted = KvPool::pages_for(s.limit) - static_cast<int>(s.pages.size());
    if (wanted > 0 && !pool_.acquire(wanted, s.pages)) return;  // first come first served: nobody overtakes
    s.state = State::kPrefill;
    running_.push_back(&s);
    waiting_.pop_front();
  }
}

}  // namespace juno::engine
