// SPDX-License-Identifier: Apache-2.0
#include "base/recorder.h"

#include <algorithm>
#include <cassert>

namespace juno {

Recorder::Recorder(std::span<const std::string_view> names) : names_(names.begin(), names.end()) {
  assert(names.size() <= kMaxOps);
}

void Recorder::count(int op, uint64_t weight_bytes, uint64_t moved_bytes) {
  Row& row = ops_[op];
  add(row.calls, 1);
  add(row.weight_bytes, weight_bytes);
  add(row.moved_bytes, moved_bytes);
}

void Recorder::repeat(const Snapshot& counts) {
  for (size_t i = 0; i < counts.ops.size(); ++i) {
    add(ops_[i].calls, counts.ops[i].calls);
    add(ops_[i].weight_bytes, counts.ops[i].weight_bytes);
    add(ops_[i].moved_bytes, counts.ops[i].moved_bytes);
  }
  for (const Declined& event : counts.declined) declined(event);
}

void Recorder::failed(int op) { add(ops_[op].failures, 1); }

void Recorder::declined(const Declined& event) {
  std::lock_guard lock(mutex_);
  const auto end = declined_.begin() + declined_size_;
  const auto known =
      std::find_if(declined_.begin(), end, [&](const Declined& d) { return d.same_as(event); });
  if (known != end) {
    known->count += 1;
  } else if (declined_size_ < kMaxDeclined) {
    declined_[declined_size_] = event;
    declined_[declined_size_++].count = 1;
  } else {
    declined_unlisted_ += 1;
  }
}

Snapshot Recorder::snapshot() const {
  Snapshot s;
  for (size_t i = 0; i < names_.size(); ++i) {
    const Row& row = ops_[i];
    s.ops.push_back({names_[i], row.calls, row.failures, row.weight_bytes, row.moved_bytes, row.nanoseconds});
  }
  std::lock_guard lock(mutex_);
  s.declined.assign(declined_.begin(), declined_.begin() + declined_size_);
  s.declined_unlisted = declined_unlisted_;
  return s;
}

uint64_t Snapshot::weight_bytes() const {
  uint64_t sum = 0;
  for (const OpCount& op : ops) sum += op.weight_bytes;
  return sum;
}

uint64_t Snapshot::declined_count() const {
  uint64_t sum = declined_unlisted;
  for (const Declined& d : declined) sum += d.count;
  return sum;
}

uint64_t Snapshot::failures() const {
  uint64_t sum = 0;
  for (const OpCount& op : ops) sum += op.failures;
  return sum;
}

Snapshot Snapshot::since(const Snapshot& before) const {
  assert(ops.size() == before.ops.size());
  Snapshot d = *this;
  for (size_t i = 0; i < ops.size(); ++i) {
    d.ops[i].calls -= before.ops[i].calls;
    d.ops[i].failures -= before.ops[i].failures;
    d.ops[i].weight_bytes -= before.ops[i].weight_bytes;
    d.ops[i].moved_bytes -= before.ops[i].moved_bytes;
    d.ops[i].nanoseconds -= before.ops[i].nanoseconds;
  }
  for (const Declined& old : before.declined) {
    for (Declined& now : d.declined)
      if (now.same_as(old)) now.count -= old.count;
  }
  std::erase_if(d.declined, [](const Declined& event) { return event.count == 0; });
  d.declined_unlisted -= before.declined_unlisted;
  d.traffic.launches -= before.traffic.launches;
  d.traffic.failures -= before.traffic.failures;
  d.traffic.written -= before.traffic.written;
  d.traffic.read -= before.traffic.read;
  return d;
}

Snapshot Snapshot::plus(const Snapshot& other) const {
  assert(ops.size() == other.ops.size());
  Snapshot sum = *this;
  for (size_t i = 0; i < ops.size(); ++i) {
    sum.ops[i].calls += other.ops[i].calls;
    sum.ops[i].failures += other.ops[i].failures;
    sum.ops[i].weight_bytes += other.ops[i].weight_bytes;
    sum.ops[i].moved_bytes += other.ops[i].moved_bytes;
    sum.ops[i].nanoseconds += other.ops[i].nanoseconds;
  }
  for (const Declined& there : other.declined) {
    const auto known =
        std::ranges::find_if(sum.declined, [&](const Declined& d) { return d.same_as(there); });
    if (known != sum.declined.end()) known->count += there.count;
    else sum.declined.push_back(there);
  }
  sum.declined_unlisted += other.declined_unlisted;
  sum.traffic.launches += other.traffic.launches;
  sum.traffic.failures += other.traffic.failures;
  sum.traffic.written += other.traffic.written;
  sum.traffic.read += other.traffic.read;
  return sum;
}

}  // namespace juno
