// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/rates.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "backend/cpu/vec/isa.h"
#include "base/cpu_limits.h"
#include "base/error.h"
#include "base/thread_pool.h"

namespace juno::cpu {
namespace {

constexpr int kPasses = 8;
constexpr size_t kPiece = size_t{4} << 20;
constexpr int64_t kRounds = 1 << 17;  // of multiply_add in a row: some milliseconds at most

const Kernels& kernels_of(std::string_view name) {
  for (const Isa& isa : isas())
    if (isa.name == name && isa.supported()) return isa.kernels();
  fail(Code::kDevice, "[backend/cpu] no instruction set '{}' to measure with", name);
}

// Caches are seldom told rightly in a virtual machine, hence the bounds.
size_t buffer_size(size_t memory) {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const size_t wanted =
      std::clamp(4 * static_cast<size_t>(std::max(cache, 0L)), size_t{256} << 20, size_t{2} << 30);
  return std::max(std::min(wanted, memory) / kPiece, size_t{1}) * kPiece;
}

// The largest amount a second of some runs of `pass`.
template <class Pass>
double best_rate(double amount, Pass&& pass) {
  double best = 0;
  for (int i = 0; i < kPasses; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, amount / took.count());
  }
  return best;
}

}  // namespace

Rates measure_rates(std::string_view isa, int threads, size_t memory) {
  const Probe& probe = kernels_of(isa).probe;
  ThreadPool pool(threads, cpu_limits().threads());
  Rates rates{.buffer = buffer_size(memory)};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  const std::unique_ptr<std::byte, Free> buffer(
      static_cast<std::byte*>(::operator new (rates.buffer, std::align_val_t{64})));
  const int pieces = static_cast<int>(rates.buffer / kPiece);
  const auto piece = [&](int i) { return buffer.get() + static_cast<size_t>(i) * kPiece; };
  pool.parallel_for(pieces, [&](int i, int) { std::memset(piece(i), 1, kPiece); });
  rates.read = best_rate(static_cast<double>(rates.buffer), [&] {
    pool.parallel_for(pieces, [&](int i, int) { probe.read(piece(i), kPiece); });
  });
  const int items = 4 * threads;
  const int64_t of_item = probe.multiply_add(kRounds);
  rates.multiply_add = best_rate(static_cast<double>(of_item) * items, [&] {
    pool.parallel_for(items, [&](int, int) { probe.multiply_add(kRounds); });
  });
  return rates;
}

}  // namespace juno::cpu
