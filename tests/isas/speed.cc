// SPDX-License-Identifier: Apache-2.0
// How fast each instruction set multiplies, one thread, as JSON:  isa_speed
// Bytes of weights a second for one token (a matrix larger than most caches), multiply-adds a second for 512.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "backend/cpu/vec/isa.h"
#include "quant/format_info.h"

namespace juno::cpu {
namespace {

using quant::FormatInfo;

struct Free {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory memory(size_t size) { return Memory(new (std::align_val_t{64}) std::byte[size + 64]()); }

// Random bits, but whatever number they are read as is neither a NaN nor a denormal.
void fill(std::byte* to, size_t size) {
  uint32_t seed = 1;
  for (size_t i = 0; i < size; ++i) {
    seed = seed * 1664525u + 1013904223u;
    to[i] = static_cast<std::byte>((seed >> 24 & 0x2f) | 0x40);
  }
}

// The shortest of some runs, in seconds.
double seconds(const Kernels& kernels, const FormatKernels& of, const Product& p, std::byte* scratch,
               bool pack) {
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    if (pack)
      for (int i = 0; i < p.pack_items(); ++i) kernels.pack(p, i, scratch);
    for (int64_t o = 0; o < p.outputs; o += kItemRows)
      of.multiply(p, o, o + kItemRows < p.outputs ? o + kItemRows : p.outputs, scratch);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = took.count() < best ? took.count() : best;
  }
  return best;
}

double measure(const Kernels& kernels, const FormatKernels& of, const FormatInfo& format, int tokens,
               int64_t outputs) {
  Product p = of.product();
  p.k = 2048;
  p.outputs = outputs;
  p.tokens = tokens;
  p.row_bytes = format.row_bytes(p.k);
  p.block = format.activation_block(p.k);
  const size_t weights = static_cast<size_t>(p.row_bytes * p.outputs),
               numbers = static_cast<size_t>(tokens * p.k);
  const Memory weight = memory(weights), x = memory(numbers * sizeof(float)),
               y = memory(static_cast<size_t>(tokens * outputs) * sizeof(float)),
               packed = memory(static_cast<size_t>(p.pack_items()) * p.packed_bytes()),
               scratch = memory(p.scratch_bytes());
  fill(weight.get(), weights);
  auto* values = reinterpret_cast<float*>(x.get());
  for (size_t i = 0; i < numbers; ++i) values[i] = static_cast<float>(i * 37 % 101) - 50;
  p.weight = weight.get();
  p.x = values;
  p.y = reinterpret_cast<float*>(y.get());
  p.packed = packed.get();
  return seconds(kernels, of, p, scratch.get(), !format.is_float);
}

void report(const Isa& isa) {
  const Kernels& kernels = isa.kernels();
  const char* comma = "";
  for (int i = 0; i < kernels.format_count; ++i, comma = ",") {
    const FormatKernels& of = kernels.formats[i];
    const FormatInfo& format = *quant::find_format(of.gguf_id);
    const int64_t one = 16384, many = 256;
    const double decode = measure(kernels, of, format, 1, one),
                 prefill = measure(kernels, of, format, 512, many);
    std::printf(
        "%s\n  {\"format\": \"%s\", \"decode_bytes_per_second\": %.4g, \"prefill_multiply_adds_per_second\": "
        "%.4g}",
        comma, format.name, static_cast<double>(format.row_bytes(2048) * one) / decode,
        2048.0 * 512 * static_cast<double>(many) / prefill);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace juno::cpu

int main() {
  const char* comma = "";
  std::printf("{");
  for (const juno::cpu::Isa& isa : juno::cpu::isas()) {
    std::printf("%s\n \"%.*s\": ", comma, static_cast<int>(isa.name.size()), isa.name.data());
    comma = ",";
    if (!isa.supported()) {
      std::printf("\"not run: this processor lacks it\"");
      continue;
    }
    std::printf("[");
    juno::cpu::report(isa);
    std::printf("]");
  }
  std::printf("}\n");
}
