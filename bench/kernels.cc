// SPDX-License-Identifier: Apache-2.0
// Products of every weight format on one thread of every instruction set: bytes of weights and integer
// operations a second, beside what the machine reads and multiplies at most. All figures are of CPU time.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "backend/cpu/vec/isa.h"
#include "quant/format_info.h"

namespace juno::cpu {
namespace {

using quant::FormatInfo;

// Cache lines of zeros.
class Bytes {
 public:
  explicit Bytes(size_t size) : size_(size), data_(new (std::align_val_t{64}) std::byte[size + 64]()) {}
  ~Bytes() { ::operator delete[](data_, std::align_val_t{64}); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::byte* data_;
};

// Random bits, but whatever number they are read as is neither a NaN nor a denormal.
void fill(const Bytes& to, uint32_t seed) {
  for (size_t i = 0; i < to.size(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    to.data()[i] = static_cast<std::byte>((seed >> 24 & 0x2f) | 0x40);
  }
}

struct Shape {
  int64_t outputs, k;
  int tokens;
};

const FormatKernels& kernels_of(const Kernels& kernels, const FormatInfo& format) {
  int i = 0;
  while (kernels.formats[i].gguf_id != format.gguf_id) ++i;
  return kernels.formats[i];
}

void multiply(benchmark::State& state, const Isa& isa, const FormatInfo& format, const Shape& shape) {
  const Kernels& kernels = isa.kernels();
  const FormatKernels& of = kernels_of(kernels, format);
  Product p = of.product();
  p.k = shape.k;
  p.outputs = shape.outputs;
  p.tokens = shape.tokens;
  p.row_bytes = format.row_bytes(shape.k);
  p.block = format.activation_block(shape.k);
  p.turned = of.turn != nullptr;
  const Bytes weight(p.row_bytes * p.outputs), x(sizeof(float) * p.tokens * p.k),
      y(sizeof(float) * p.tokens * p.outputs);
  fill(weight, 1);
  for (int64_t i = 0; i < p.tokens * p.k; ++i)
    reinterpret_cast<float*>(x.data())[i] = static_cast<float>(i * 37 % 101 - 50);
  const Bytes packed(p.pack_items() * p.packed_bytes()), scratch(p.scratch_bytes());
  p.weight = weight.data();
  p.x = reinterpret_cast<const float*>(x.data());
  p.y = reinterpret_cast<float*>(y.data());
  p.packed = packed.data();
  const int64_t piece = p.many() ? kItemRows : (p.outputs + 7) / 8;
  for (auto _ : state) {
    if (!format.is_float)
      for (int i = 0; i < p.pack_items(); ++i) kernels.pack(p, i, scratch.data());
    for (int64_t o = 0; o < p.outputs; o += piece)
      of.multiply(p, o, std::min(o + piece, p.outputs), scratch.data());
    benchmark::ClobberMemory();
  }
  const double rounds = static_cast<double>(state.iterations());
  state.counters["B/s"] = benchmark::Counter(rounds * weight.size(), benchmark::Counter::kIsRate);
  state.counters["op/s"] =
      benchmark::Counter(rounds * 2.0 * p.tokens * p.k * p.outputs, benchmark::Counter::kIsRate);
}

void read_memory(benchmark::State& state) {
  const Bytes from(static_cast<size_t>(state.range(0)) << 20);
  std::memset(from.data(), 1, from.size());
  for (auto _ : state) {
    uint64_t sums[8] = {};
    const auto* at = reinterpret_cast<const uint64_t*>(from.data());
    for (size_t i = 0; i + 8 <= from.size() / 8; i += 8)
      for (int j = 0; j < 8; ++j) sums[j] ^= at[i + j];
    for (uint64_t sum : sums) benchmark::DoNotOptimize(sum);
  }
  state.counters["B/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * from.size()), benchmark::Counter::kIsRate);
}
BENCHMARK(read_memory)->Arg(1)->Arg(64)->Arg(1024);

void add_all() {
  for (const Isa& isa : isas()) {
    if (!isa.supported()) continue;
    for (const FormatInfo& format : quant::formats()) {
      for (const Shape& shape :
           {Shape{512, 2048, 1}, Shape{131072, 2048, 1}, Shape{8192, 2048, 1}, Shape{2048, 2048, 2},
            Shape{2048, 2048, 4}, Shape{2048, 2048, 8}, Shape{2048, 2048, 512}}) {
        const std::string name = std::string(isa.name) + "/" + format.name + "/" +
                                 std::to_string(shape.outputs) + "x" + std::to_string(shape.k) + "/" +
                                 std::to_string(shape.tokens);
        if (shape.k % format.block_elements == 0)
          benchmark::RegisterBenchmark(name.c_str(), [&isa, &format, shape](benchmark::State& state) {
            multiply(state, isa, format, shape);
          });
      }
    }
  }
}

}  // namespace
}  // namespace juno::cpu

int main(int argc, char** argv) {
  juno::cpu::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
