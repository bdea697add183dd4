// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernel_times.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/list.h"

namespace juno::gpu {
namespace {

// Bytes of weights and of the cache that a launch reads; 0 where that is not known here.
uint64_t bytes_read(const auto& /*args*/, uint64_t /*seen*/) { return 0; }

uint64_t of_parts(const MatvecPart* parts, int count) {
  uint64_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += parts[i].weight.plane_bytes;
  return bytes;
}

// Which experts are chosen is known on the device alone.
uint64_t bytes_read(const MatvecArgs& a, uint64_t /*seen*/) {
  return a.ids ? 0 : of_parts(a.parts, a.part_count);
}
uint64_t bytes_read(const ManyArgs& a, uint64_t /*seen*/) { return of_parts(a.parts, a.part_count); }
uint64_t bytes_read(const FloatArgs& a, uint64_t /*seen*/) { return of_parts(a.parts, a.part_count); }

// Neither behind a window nor beside a prompt does every row see all that its sequence has.
uint64_t bytes_read(const AttendArgs& a, uint64_t seen) {
  if (a.window > 0 || a.skip_runs) return 0;
  const auto row = static_cast<uint64_t>(a.places.key_dim + a.places.value_dim) * sizeof(uint16_t);
  return seen * static_cast<uint64_t>(a.places.kv_heads) * row;
}

template <class Args>
uint64_t read_by(const Launch& launch, uint64_t seen) {
  Args args;
  std::memcpy(static_cast<void*>(&args), launch.args, sizeof args);
  return bytes_read(args, seen);
}

// attend_merge has the arguments of attend, and reads no cache.
uint64_t read_by(const Launch& launch, uint64_t seen) {
#define JUNO_READ(name, args, threads, blocks) read_by<args>,
  static constexpr uint64_t (*kReads[])(const Launch&, uint64_t) = {JUNO_KERNELS(JUNO_READ)};
#undef JUNO_READ
  if (launch.kernel == static_cast<int>(Kernel::attend_merge)) return 0;
  return kReads[launch.kernel](launch, seen);
}

std::string_view short_name(int kernel) {
  const std::string_view name = kernel_names()[static_cast<size_t>(kernel)];
  return name.substr(std::string_view("juno_").size());
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<ops::KernelTime> by_kernel(std::span<const Launch> launches, std::span<const double> seconds,
                                       uint64_t seen) {
  using Alike = std::tuple<int, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t>;
  std::map<Alike, std::vector<double>> groups;
  for (size_t i = 0; i < launches.size(); ++i) {
    const Launch& l = launches[i];
    groups[{l.kernel, l.grid.x, l.grid.y, l.grid.z, l.threads, read_by(l, seen)}].push_back(seconds[i]);
  }
  std::vector<ops::KernelTime> times;
  for (const auto& [alike, each] : groups) {
    const auto& [kernel, x, y, z, threads, bytes] = alike;
    ops::KernelTime time{.kernel = short_name(kernel),
                         .grid = {x, y, z},
                         .threads = threads,
                         .launches = static_cast<int>(each.size()),
                         .seconds_each = median(each),
                         .bytes = bytes * each.size()};
    for (double s : each) time.seconds += s;
    times.push_back(time);
  }
  std::ranges::stable_sort(times, std::greater(), &ops::KernelTime::seconds);
  return times;
}

}  // namespace juno::gpu
