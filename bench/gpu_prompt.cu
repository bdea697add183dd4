// SPDX-License-Identifier: Apache-2.0
// See gpu_prompt.h. tools/gpu_prompt compiles this once for each part, side by side, and runs the whole.
#include "gpu_prompt.h"

namespace juno::gpu {

using namespace quant;
using W2 = ManyShape<8, 2, 1, 4, 2>;         // 128 rows, 64 tokens
using W2A = ManyShape<8, 2, 1, 4, 1, true>;  // minima in registers of their own
using W3 = ManyShape<8, 3, 1, 4, 1>;         // 192 rows
using W4 = ManyShape<8, 4, 1, 2, 1>;         // 256 rows
using T2 = ManyShape<16, 2, 1, 2, 1>;        // 128 rows, 128 tokens
using N4 = ManyShape<4, 1, 4, 3, 2>;         // 64 rows, 32 tokens, K in four
using N2 = ManyShape<2, 1, 4, 3, 2>;         // 16 tokens

inline constexpr Size kSquare{4096, 4096, 2048}, kWide{14336, 4096, 2048}, kDeep{4096, 14336, 2048};

#define JUNO_FEW_TOKENS(F, unit, S, name, most)                  \
  for (const int tokens : {16, 32, 64, 128, 256})                \
    for (const Size& s : {kSquare, Size{28672, 4096, 0}, kDeep}) \
      if (tokens <= most) run.product<F, unit, S, 1>(name, {s.rows, s.cols, tokens});

#if JUNO_PART == 0
void part(Run& run, std::integral_constant<int, 0>) {
  for (const Size& s : {kSquare, kWide, kDeep}) run.product<Q4_K, 128, W2, 1>("2x64x64", s);
  for (const int tokens : {64, 256})
    for (const Size& s : {kSquare, Size{28672, 4096, 0}, kDeep})
      run.product<Q4_K, 128, W2, 1>("2x64x64", {s.rows, s.cols, tokens});
  run.product<Q6_K, 32, W2, 1>("2x64x64", kDeep);
}
#elif JUNO_PART == 1
void part(Run& run, std::integral_constant<int, 1>) {
  for (const Size& s : {kSquare, kWide, kDeep}) run.product<Q4_K, 128, W3, 1>("3x64x64", s);
  for (const Size& s : {kSquare, kWide, kDeep}) run.product<Q4_K, 128, W4, 1>("4x64x64", s);
  run.product<Q6_K, 32, W3, 1>("3x64x64", kDeep);
}
#elif JUNO_PART == 2
void part(Run& run, std::integral_constant<int, 2>) {
  for (const Size& s : {kSquare, kWide, kDeep}) run.product<Q4_K, 128, W2A, 1>("2x64x64 apart", s);
}
#elif JUNO_PART == 3
void part(Run& run, std::integral_constant<int, 3>) {
  for (const Size& s : {kSquare, kWide, kDeep}) run.product<Q4_K, 128, T2, 1>("2x64x128", s);
  run.product<Q6_K, 32, T2, 1>("2x64x128", kDeep);
}
#elif JUNO_PART == 4
void part(Run& run, std::integral_constant<int, 4>) {
  JUNO_FEW_TOKENS(Q4_K, 128, N4, "split 32", 64)
  JUNO_FEW_TOKENS(Q4_K, 128, N2, "split 16", 16)
  JUNO_FEW_TOKENS(Q6_K, 32, N4, "split 32", 32)
}
#elif JUNO_PART == 5
void part(Run& run, std::integral_constant<int, 5>) {
  run.product<Q8_0, 32, W2, 1>("2x64x64", kSquare);
  run.product<Q5_K, 64, W2, 1>("2x64x64", kSquare);
  run.product<Q2_K, 128, W2, 1>("2x64x64", kSquare);
  run.product<Q3_K, 128, W2, 1>("2x64x64", kSquare);
  run.product<Q4_0, 32, W2, 1>("2x64x64", kSquare);
  run.product<Q4_K, 32, W2, 1>("2x64x64 K 3584", {4096, 3584, 2048});
}
#elif JUNO_PART == 6
void part(Run& run, std::integral_constant<int, 6>) {
  run.attention<PromptShape<128> >("8B", 2048, 0, 32, 8, 128);
  run.attention<PromptShape<128> >("8B later", 512, 3000, 32, 8, 128);
  run.attention<PromptShape<64> >("1B", 2048, 0, 32, 8, 64);
  run.attention<PromptShape<256> >("dim 256", 512, 100, 8, 1, 256);
  run.attention<PromptShape<128> >("seven heads of 80", 300, 77, 7, 1, 80);
  run.attention<PromptShape<128> >("heads of 96", 300, 77, 4, 2, 96);
}
#else
#define JUNO_DECLARED(n) void part(Run& run, std::integral_constant<int, n>);
JUNO_DECLARED(0)
JUNO_DECLARED(1)
JUNO_DECLARED(2)
JUNO_DECLARED(3)
JUNO_DECLARED(4)
JUNO_DECLARED(5)
JUNO_DECLARED(6)
template <int... kParts>
void some(Run& run, int wanted, std::integer_sequence<int, kParts...>) {
  ((wanted == kParts ? part(run, std::integral_constant<int, kParts>{}) : void()), ...);
}
#endif

}  // namespace juno::gpu

#if JUNO_PART == 7
int main(int argc, char** argv) {
  juno::gpu::Run run;
  if (argc > 2) run.only = argv[2];
  juno::gpu::some(run, argc > 1 ? std::atoi(argv[1]) : 0, std::make_integer_sequence<int, 7>{});
  return run.failed ? 1 : 0;
}
#endif
