// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>
#include <tuple>

namespace juno::engine {
namespace {

// When a sequence is admitted a page stays free for so many that run and will want one, lest it be preempted
// at once.
constexpr int kRunningPerSparePage = 8;

int64_t left(const Sequence& s) { return static_cast<int64_t>(s.tokens.size()) - s.stored; }

int pages_wanted(const Sequence& s) {
  return KvPool::pages_for(static_cast<int64_t>(s.tokens.size())) - static_cast<int>(s.pages.size());
}

bool runs_before(const Sequence* a, const Sequence* b) {
  return std::tie(a->request.priority, a->id) < std::tie(b->request.priority, b->id);
}

bool waits_before(const Sequence* a, const Sequence* b) {
  return std::tie(a->request.priority, a->share->served, a->id) <
         std::tie(b->request.priority, b->share->served, b->id);
}

// The longest beginning of `count` tokens in which at most `rows` logits are wanted.
int64_t cut(const Sequence& s, int64_t count, int64_t rows) {
  const auto& at = s.request.logits_at;
  for (size_t i = s.next_logits; i < at.size() && at[i] < s.stored + count; ++i)
    if (rows-- == 0) return at[i] - s.stored;
  const bool newest = count == left(s) && (at.empty() || at.back() + 1 != s.stored + count);
  return newest && rows == 0 ? count - 1 : count;
}

int64_t rows_of(const Sequence& s, int64_t count) {
  const auto from = s.request.logits_at.begin() + static_cast<ptrdiff_t>(s.next_logits);
  const auto end = std::lower_bound(from, s.request.logits_at.end(), s.stored + count);
  return (end - from) + (count == left(s) && (end == from || *std::prev(end) + 1 != s.stored + count));
}

}  // namespace

Scheduler::Scheduler(KvPool& pool, PrefixCache& cache, const Limits& limits)
    : pool_(pool), cache_(cache), limits_(limits) {
  for (auto* list : {&running_, &prompts_}) list->reserve(static_cast<size_t>(limits.sequences));
  pieces_.reserve(static_cast<size_t>(limits.sequences));
}

void Scheduler::set_limits(int tokens, int outputs) {
  limits_.tokens = tokens;
  limits_.outputs = outputs;
}

// A tenant that comes, or comes back, neither owes nor is owed anything.
void Scheduler::add(Sequence& s) {
  const auto [at, fresh] = shares_.try_emplace(s.request.tenant);
  if (fresh && shares_.size() > 1) {
    int64_t least = INT64_MAX;
    for (const auto& [name, share] : shares_)
      if (&share != &at->second) least = std::min(least, share.served);
    at->second.served = least;
  }
  s.share = &at->second;
  ++s.share->sequences;
  waiting_.push_back(&s);
}

void Scheduler::remove(Sequence& s) {
  if (std::erase(waiting_, &s) + std::erase(running_, &s) == 0) return;
  if (--s.share->sequences == 0) shares_.erase(s.request.tenant);
}

std::span<Piece> Scheduler::next() {
  grow();
  admit();
  pieces_.clear();
  const auto decodes = [](const Sequence* s) { return s->state == State::kDecode; };
  const int64_t count = std::ranges::count_if(running_, decodes);
  int64_t others = count;
  tokens_left_ = limits_.tokens;
  outputs_left_ = limits_.rows();
  for (Sequence* s : running_)
    if (decodes(s)) give(*s, tokens_left_ - --others);
  const bool bounded = limits_.beside > 0 && count > 0;
  give_prompts(bounded ? std::min(tokens_left_, std::max<int64_t>(limits_.beside, count)) : tokens_left_);
  return pieces_;
}

void Scheduler::give(Sequence& s, int64_t most) {
  const int64_t count = cut(s, std::min(most, left(s)), outputs_left_);
  if (count == 0) return;
  pieces_.push_back({&s, s.stored, count});
  tokens_left_ -= count;
  outputs_left_ -= rows_of(s, count);
  s.share->served += count;
}

int64_t Scheduler::extend(Piece& piece, int64_t count) {
  Sequence& s = *piece.sequence;
  const auto tokens = static_cast<int64_t>(s.tokens.size());
  count = std::min(count, spare());
  const int wanted = KvPool::pages_for(tokens + count) - static_cast<int>(s.pages.size());
  if (wanted > 0 && !cache_.acquire(wanted, s.pages))
    count = static_cast<int64_t>(s.pages.size()) * ops::kPagePositions - tokens;
  piece.count += count;
  tokens_left_ -= count;
  outputs_left_ -= count;
  return count;
}

void Scheduler::give_prompts(int64_t most) {
  prompts_.clear();
  for (Sequence* s : running_)
    if (s->state == State::kPrefill) prompts_.push_back(s);
  if (prompts_.empty()) return;
  std::sort(prompts_.begin() + 1, prompts_.end(), [](const Sequence* a, const Sequence* b) {
    return std::tuple(a->request.priority, left(*a), a->id) <
           std::tuple(b->request.priority, left(*b), b->id);
  });
  int64_t others = 0;
  for (size_t i = 1; i < prompts_.size(); ++i) others += left(*prompts_[i]);
  const int64_t kept = tokens_left_ - most;
  give(*prompts_.front(), std::max((most + 1) / 2, most - others));
  for (size_t i = 1; i < prompts_.size(); ++i) give(*prompts_[i], tokens_left_ - kept);
}

// Pages for the tokens of all that run, the last of them preempted where there are too few.
void Scheduler::grow() {
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& s = *running_[i];
    while (!cache_.acquire(pages_wanted(s), s.pages)) {
      Sequence& last = *running_.back();
      preempt(last);
      if (&last == &s) return;
    }
  }
}

void Scheduler::admit() {
  while (Sequence* s = candidate()) {
    while (!open(*s)) {
      if (running_.empty() || running_.back()->request.priority <= s->request.priority) return;
      preempt(*running_.back());
    }
    if (!s->admitted) {
      s->finish.cached_tokens = s->stored;
      s->finish.queue_seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - s->submitted).count();
    }
    s->admitted = true;
    s->state = State::kPrefill;
    std::erase(waiting_, s);
    running_.insert(std::ranges::upper_bound(running_, s, runs_before), s);
  }
}

// Who is to be admitted next; null: nobody that can.
Sequence* Scheduler::candidate() const {
  Sequence* first = nullptr;
  for (Sequence* s : waiting_)
    if (!s->leader && (!first || waits_before(s, first))) first = s;
  return first;
}

bool Scheduler::open(Sequence& s) {
  if (running_.size() == static_cast<size_t>(limits_.sequences)) return false;
  const auto grows = [](const Sequence* r) {
    return KvPool::pages_for(r->limit) > static_cast<int>(r->pages.size());
  };
  const auto spare = std::ranges::count_if(running_, grows) / kRunningPerSparePage;
  return cache_.open(s, static_cast<int>(spare));
}

void Scheduler::preempt(Sequence& s) {
  if (s.request.keep) cache_.publish(s);
  pool_.release(s.pages);
  s.stored = 0;
  s.state = State::kWaiting;
  std::erase(running_, &s);
  waiting_.push_back(&s);
  ++preempted_;
}

}  // namespace juno::engine
