// SPDX-License-Identifier: Apache-2.0
#include "engine/picker.h"

#include <algorithm>
#include <atomic>

#include "base/portable.h"

namespace juno::engine {

// Looks at all of them: without a way out the loop is one of vectors.
bool all_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  int odd = 0;
  for (float v : values) odd |= (bits_of(v) & kExponent) == kExponent;
  return odd == 0;
}

Picker::Picker(Runner& runner, int32_t vocab, int rows) : runner_(runner), pool_(runner.pool()) {
  const int threads = pool_ ? pool_->threads() : 1;
  picked_.resize(static_cast<size_t>(threads));
  for (int i = 0; i < std::min(threads, rows); ++i)
    desks_.push_back(std::make_unique<Desk>(vocab, runner.row_size()));
}

// Rows differ in what they cost, so each desk takes the next one when it is free.
void Picker::pick(std::span<Choice> choices) {
  const auto wanted = std::ranges::count_if(choices, [](const Choice& c) { return c.sampling != nullptr; });
  const int desks = static_cast<int>(std::min<int64_t>(wanted, std::ssize(desks_)));
  std::atomic<size_t> next = 0;
  const auto work = [&](int desk, int thread) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < choices.size();) {
      if (!choices[i].sampling) continue;
      pick(choices[i], *desks_[static_cast<size_t>(desk)]);
      ++picked_[static_cast<size_t>(thread)];
    }
  };
  if (pool_) pool_->parallel_for(desks, work);
  else if (desks > 0) work(0, 0);
}

void Picker::pick(Choice& c, Desk& desk) const {
  c.allowed.mask = c.mask;
  if (!c.greatest.empty()) {
    c.finite = true;
    if (c.fault) return;
    const auto pick = desk.sampler.pick(*c.sampling, c.greatest, c.history, std::ssize(c.history), c.allowed);
    if (pick) {
      c.pick = *pick;
      return;
    }
    c.whole = "too few of the greatest";
  }
  runner_.read(c.row, desk.logits);
  c.finite = all_finite(desk.logits);
  if (!c.finite || c.fault) return;
  c.pick = desk.sampler.pick(*c.sampling, desk.logits, c.history, std::ssize(c.history), c.allowed);
  if (!c.pick.score) return;
  std::ranges::copy(c.pick.score->top, c.top.begin());  // from the sampler, which goes on to another row
  c.pick.score->top = std::span(c.top).first(c.pick.score->top.size());
}

}  // namespace juno::engine
