// SPDX-License-Identifier: Apache-2.0
// The greatest logits of a row, in the order of docs/sampling.md. A logit and its id make one number; all are
// different, so what the greatest of them are depends on no order of threads or blocks.
#pragma once
#include "backend/gpu/kernels/rows.h"

namespace juno::gpu {

// What a block shares.
struct TopRoom {
  uint64_t boxes[kTopThreads];
  uint64_t list[kTopHeld * kMostTop];
  uint64_t least;
  uint32_t count, odd, last;
};

// The greater logit first, then the lower id; never 0, which stands for none.
JUNO_GPU uint64_t top_key(float logit, int id) {
  return static_cast<uint64_t>(ordered(logit)) << 32 | ~static_cast<uint32_t>(id);
}

// Of one key a thread, the one that comes after as many as there are threads before this one. Bitonic. Short
// code: what runs once a token waits for its instructions.
JUNO_GPU uint64_t ranked(uint64_t mine, uint64_t* boxes) {
  JUNO_UNROLL_BY(1)
  for (int size = 2; size <= kTopThreads; size *= 2) {
    JUNO_UNROLL_BY(1)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      uint64_t other = 0;
      if (stride < kWarp) {
        other = shuffle_xor(mine, stride);
      } else {
        boxes[thread()] = mine;
        barrier();
        other = boxes[thread() ^ stride];
        barrier();
      }
      const bool greater = ((thread() & stride) == 0) == ((thread() & size) == 0);
      mine = (mine > other) == greater ? mine : other;
    }
  }
  return mine;
}

// Leaves the k greatest of all threads' keys in room.list, the greatest first. The k-th of the threads' own
// greatest is a bound that k keys reach: those of k threads at most, so that what is left fits into the list
// and is soon one key a thread (`few`), of which the order is the result.
JUNO_GPU void narrow(uint64_t (&mine)[kTopHeld], bool few, int k, TopRoom& room) {
  for (;;) {
    uint64_t most = mine[0];
    JUNO_UNROLL
    for (int h = 1; h < kTopHeld; ++h) most = mine[h] > most ? mine[h] : most;
    most = ranked(most, room.boxes);  // with barriers, so that the list may be written anew
    if (few || k == 1) {
      if (thread() < k) room.list[thread()] = most;
      barrier();
      return;
    }
    if (thread() == k - 1) room.least = most;
    if (thread() == 0) room.count = 0;
    barrier();
    const uint64_t least = room.least;
    JUNO_UNROLL
    for (int h = 0; h < kTopHeld; ++h)
      if (mine[h] != 0 && mine[h] >= least) room.list[atomic_add(&room.count, 1)] = mine[h];
    barrier();
    const int count = static_cast<int>(room.count);
    JUNO_UNROLL
    for (int h = 0; h < kTopHeld; ++h) {
      const int i = h * kTopThreads + thread();
      mine[h] = i < count ? room.list[i] : 0;
    }
    few = count <= kTopThreads;
  }
}

// The same of key(0) to key(n - 1), as many at a time as a block holds beside the greatest so far. Past the
// end the last one is read once more, so that no load waits for another.
template <class Key>
JUNO_GPU void select(int n, int k, TopRoom& room, const Key& key) {
  for (int at = 0; at < n; at += (kTopHeld - 1) * kTopThreads) {
    uint64_t mine[kTopHeld];
    mine[0] = at > 0 && thread() < k ? room.list[thread()] : 0;
    JUNO_UNROLL
    for (int h = 1; h < kTopHeld; ++h) {
      const int i = at + (h - 1) * kTopThreads + thread();
      const uint64_t one = key(i < n ? i : n - 1);
      mine[h] = i < n ? one : 0;
    }
    narrow(mine, at == 0 && n <= kTopThreads, k, room);
  }
}

// Leaves this block's k keys with the row's and returns whether it is the last of the row, which then has
// room.odd of all of them.
JUNO_GPU bool last_of_row(const TopArgs& a, uint64_t* parts, int k, TopRoom& room) {
  constexpr uint32_t kOdd = 1u << 16;  // above the count of blocks
  if (thread() < k) parts[block_x() * k + thread()] = room.list[thread()];
  fence();
  barrier();
  if (thread() == 0) {
    const uint32_t before = atomic_add(a.arrived + block_y(), room.odd ? kOdd + 1 : 1);
    room.last = before % kOdd + 1 == static_cast<uint32_t>(blocks_x());
    room.odd |= before / kOdd;
    if (room.last) a.arrived[block_y()] = 0;  // for the next pass
    fence();
  }
  barrier();
  return room.last != 0;
}

// Grid: pieces of a row, rows. Each block finds the greatest of its piece, the last one those of all pieces.
JUNO_GPU void top(const TopArgs& a) {
  begin();
  const int row = block_y(), pieces = blocks_x(), first = a.first[row], k = a.first[row + 1] - first;
  if (k == 0) return;
  TopRoom& room = *shared<TopRoom>();
  const float* logits = a.logits + static_cast<int64_t>(row) * a.columns;
  const int length = (a.columns + pieces - 1) / pieces, from = block_x() * length;
  const int n = a.columns - from < length ? a.columns - from : length;
  if (thread() == 0) room.odd = 0;
  uint64_t* parts = a.parts + static_cast<int64_t>(row) * pieces * kMostTop;
  bool finite = true;
  JUNO_UNROLL_BY(1)
  for (bool whole = false;; whole = true) {
    select(whole ? pieces * k : n, k, room, [&](int i) {
      if (whole) return parts[i];
      const float x = logits[from + i];
      finite &= finite_number(x);
      return from + i < a.n ? top_key(x, from + i) : uint64_t{0};
    });
    if (whole) break;
    if (!finite) room.odd = 1;
    barrier();
    if (pieces == 1) break;
    if (!last_of_row(a, parts, k, room)) return;
  }
  if (thread() >= k) return;
  const uint64_t key = room.list[thread()];
  const uint32_t id = ~static_cast<uint32_t>(key);
  a.top[first + thread()] = {key == 0 ? 0 : bits_of(logits[id]), room.odd && thread() == 0 ? ~0u : id};
}

}  // namespace juno::gpu
