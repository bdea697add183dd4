// SPDX-License-Identifier: Apache-2.0
// See gpu_prompt.h. tools/gpu_prompt compiles this once for each part, side by side, and runs the whole.
#include "gpu_prompt.h"

namespace juno::gpu {

using namespace quant;
inline constexpr Size kSquare{4096, 4096, 2048}, kWide{14336, 4096, 2048}, kDeep{4096, 14336, 2048};

// A shape whose blocks fill between 85 and 264 multiprocessors, K shared among 1 to 8 of them.
template <class F, int kUnit, class Shape>
void few(Run& run, const char* name, int tokens) {
  for (const Size& s : {kSquare, Size{28672, 4096, 0}, kDeep}) {
    for (int splits = 1; splits <= 8; splits *= 2) {
      const int across = (tokens + Shape::kTokens - 1) / Shape::kTokens;
      const int blocks = (s.rows + Shape::kRows - 1) / Shape::kRows * splits * across;
      if (blocks > 85 && blocks <= 264) run.product<F, kUnit, Shape>(name, {s.rows, s.cols, tokens}, splits);
    }
  }
}

#if JUNO_PART == 0
void part(Run& run, std::integral_constant<int, 0>) {
  for (const Size& s : {kSquare, kWide, kDeep}) run.product<Q4_K, 128, BroadShape>("broad", s);
  few<Q4_K, 128, BroadShape>(run, "broad", 256);
}
#elif JUNO_PART == 1
void part(Run& run, std::integral_constant<int, 1>) {
  for (const Size& s : {kSquare, kWide, kDeep}) run.product<Q4_K, 128, WideShape>("wide", s);
  for (const int tokens : {64, 128, 256}) few<Q4_K, 128, WideShape>(run, "wide", tokens);
}
#elif JUNO_PART == 2
void part(Run& run, std::integral_constant<int, 2>) {
  for (const int tokens : {8, 16, 32}) few<Q4_K, 128, FewShape>(run, "few", tokens);
}
#elif JUNO_PART == 3
void part(Run& run, std::integral_constant<int, 3>) {
  run.product<Q6_K, 32, WideShape>("wide", kDeep);
  run.product<Q6_K, 32, BroadShape>("broad", kDeep);
  few<Q6_K, 32, BroadShape>(run, "broad", 256);
  run.product<Q8_0, 32, WideShape>("wide", kSquare);
  run.product<Q4_0, 32, WideShape>("wide", kSquare);
}
#elif JUNO_PART == 4
void part(Run& run, std::integral_constant<int, 4>) { few<Q6_K, 32, FewShape>(run, "few", 32); }
#elif JUNO_PART == 5
void part(Run& run, std::integral_constant<int, 5>) {
  run.product<Q5_K, 64, BroadShape>("broad", kSquare);
  run.product<Q2_K, 128, BroadShape>("broad", kSquare);
  run.product<Q3_K, 128, BroadShape>("broad", kSquare);
  run.product<Q4_K, 32, WideShape>("wide K 3584", {4096, 3584, 2048});
  // Tiles that are not full.
  for (const Size& s : {Size{37, 96, 9}, Size{66, 576, 31}, Size{261, 1056, 5}}) {
    run.product<Q8_0, 32, FewShape>("few odd", s);
    run.product<Q8_0, 32, FewShape>("few odd", s, 2);
    run.product<Q8_0, 32, WideShape>("wide odd", s);
    run.product<Q4_1, 32, FewShape>("few odd", s);
  }
  for (const Size& s : {Size{37, 256, 9}, Size{66, 512, 31}, Size{261, 768, 70}}) {
    run.product<Q4_K, 32, FewShape>("few odd", s);
    run.product<Q6_K, 32, WideShape>("wide odd", s);
    run.product<Q2_K, 32, FewShape>("few odd", s, 4);
  }
  run.product<Q4_K, 128, FewShape>("few odd", {37, 1024, 9}, 8);
  run.product<Q4_K, 128, WideShape>("wide odd", {66, 1024, 51}, 4);
  run.product<Q4_K, 128, BroadShape>("broad odd", {6, 1024, 515});
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
