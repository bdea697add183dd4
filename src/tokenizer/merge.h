// SPDX-License-Identifier: Apache-2.0
// Merging, shared by byte-level BPE and SentencePiece: of all neighbours that may merge, those of the lowest
// rank, the leftmost of them, become one; again until none is left.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace juno::tokenizer {

// A slice of the word and its token. size 0: merged into its neighbour.
struct Symbol {
  int32_t id = kNoToken;
  uint32_t begin = 0, size = 0;
};

struct Merge {
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
  uint32_t rank = kNever;
  int32_t id = kNoToken;  // what the two become
};

// The merges waiting in a long word, best first. Those of one rank are mostly found from left to right, so
// they wait in line at their rank for nothing; the others go through a heap.
class MergeQueue {
 public:
  struct Item {
    uint32_t rank, left;  // left: index of the left symbol
    uint32_t size;        // bytes of both: what tells a merge that is out of date
    int32_t id;
  };

  // Empty between words, so its lines need no clearing.
  void prepare(uint32_t ranks) {
    if (lines_.size() < ranks) lines_.resize(ranks);
  }

  void push(const Item& item) {
    Line& line = lines_[item.rank];
    if (line.head == kNil) {
      waiting_.push(item.rank);
    } else if (pool_[line.tail].item.left > item.left) {
      late_.push(item);
      return;
    }
    const uint32_t place = take_place(item);
    if (line.head == kNil) {
      line.head = place;
    } else {
      pool_[line.tail].next = place;
    }
    line.tail = place;
  }

  bool pop(Item& item) {
    if (waiting_.empty() && late_.empty()) return false;
    if (waiting_.empty() || (!late_.empty() && before(late_.top(), front()))) {
      item = late_.top();
      late_.pop();
      return true;
    }
    Line& line = lines_[waiting_.top()];
    const uint32_t place = line.head;
    item = pool_[place].item;
    line.head = pool_[place].next;
    if (line.head == kNil) waiting_.pop();
    free_.push_back(place);
    return true;
  }

 private:
  static constexpr uint32_t kNil = std::numeric_limits<uint32_t>::max();
  struct Line {
    uint32_t head = kNil, tail = kNil;
  };
  struct Place {
    Item item;
    uint32_t next;
  };
  static bool before(const Item& a, const Item& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.left < b.left;
  }
  struct Later {
    bool operator()(const Item& a, const Item& b) const { return before(b, a); }
  };

  const Item& front() const { return pool_[lines_[waiting_.top()].head].item; }

  uint32_t take_place(const Item& item) {
    if (free_.empty()) {
      pool_.push_back({item, kNil});
      return static_cast<uint32_t>(pool_.size() - 1);
    }
    const uint32_t place = free_.back();
    free_.pop_back();
    pool_[place] = {item, kNil};
    return place;
  }

  std::vector<Line> lines_;  // [ranks]
  std::vector<Place> pool_;
  std::vector<uint32_t> free_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>
      waiting_;  // ranks whose line is not empty
  std::priority_queue<Item, std::vector<Item>, Later> late_;
};

// What encoding needs besides the text: one a call, reused from word to word.
struct Scratch {
  std::vector<Symbol> symbols;
  MergeQueue queue;
  std::vector<uint32_t> previous, next;  // neighbours in a long word
  std::string text;
};

inline constexpr size_t kShortWord = 64;

// find: (const Symbol& left, const Symbol& right) → Merge. Quadratic, but faster than any queue for a few
// symbols.
template <class Find>
void merge_short(std::vector<Symbol>& s, Find&& find) {
  std::array<Merge, kShortWord> with_next;
  for (size_t i = 0; i + 1 < s.size(); ++i) with_next[i] = find(s[i], s[i + 1]);
  while (s.size() > 1) {
    const size_t pairs = s.size() - 1;
    size_t best = 0;
    for (size_t i = 1; i < pairs; ++i) {
      if (with_next[i].rank < with_next[best].rank) best = i;
    }
    if (with_next[best].rank == Merge::kNever) return;
    s[best] = {with_next[best].id, s[best].begin, s[best].size + s[best + 1].size};
    s.erase(s.begin() + static_cast<ptrdiff_t>(best) + 1);
    std::copy(with_next.begin() + best + 1, with_next.begin() + pairs, with_next.begin() + best);
    if (best > 0) with_next[best - 1] = find(s[best - 1], s[best]);
    if (best + 1 < s.size()) with_next[best] = find(s[best], s[best + 1]);
  }
}

// n log n at worst, linear for a run of one character. ranks: one more than the highest that find returns.
template <class Find>
void merge_long(Scratch& scratch, uint32_t ranks, Find&& find) {
  std::vector<Symbol>& s = scratch.symbols;
  const uint32_t n = static_cast<uint32_t>(s.size());
  scratch.previous.resize(n);
  scratch.next.resize(n);
  scratch.queue.prepare(ranks);
  const auto offer = [&](uint32_t left, uint32_t right) {
    const Merge m = find(s[left], s[right]);
    if (m.rank != Merge::kNever) scratch.queue.push({m.rank, left, s[left].size + s[right].size, m.id});
  };
  for (uint32_t i = 0; i < n; ++i) {
    scratch.previous[i] = i - 1;  // of the first symbol: no index, as n is for the last
    scratch.next[i] = i + 1;
    if (i + 1 < n) offer(i, i + 1);
  }
  MergeQueue::Item item;
  while (scratch.queue.pop(item)) {
    const uint32_t left = item.left, right = s[left].size ? scratch.next[left] : n;
    // Symbols only grow, so an equal sum means that neither has changed.
    if (right >= n || s[left].size + s[right].size != item.size) continue;
    s[left] = {item.id, s[left].begin, item.size};
    s[right].size = 0;
    scratch.next[left] = scratch.next[right];
    if (scratch.next[left] < n) scratch.previous[scratch.next[left]] = left;
    if (scratch.previous[left] < n) offer(scratch.previous[left], left);
    if (scratch.next[left] < n) offer(left, scratch.next[left]);
  }
  std::erase_if(s, [](const Symbol& symbol) { return symbol.size == 0; });
}

template <class Find>
void merge(Scratch& scratch, uint32_t ranks, Find&& find) {
  if (scratch.symbols.size() <= kShortWord) {
    merge_short(scratch.symbols, find);
  } else {
    merge_long(scratch, ranks, find);
  }
}

}  // namespace juno::tokenizer
