#include "gpu_prompt.h"
namespace juno::gpu {
using namespace quant;
inline constexpr Size kSquare{4096, 4096, 2048}, kWide{14336, 4096, 2048}, kDeep{4096, 14336, 2048};
using A = ManyShape<12, 2, 1>;
using C = ManyShape<8, 2, 2, true>;
using D = ManyShape<8, 3, 1>;
using E = ManyShape<16, 2, 1>;
using G1 = ManyShape<4, 4, 1>;
using G3 = ManyShape<4, 3, 2, true>;
using K = ManyShape<4, 3, 1>;
using J = ManyShape<2, 4, 2, true>;
#define BIG(F, unit, S, name) for (const Size& s : {kSquare, kWide, kDeep}) run.product<F, unit, S>(name, s);
#define FEW(F, unit, S, name, ...)                  \
  for (const int tokens : {__VA_ARGS__})                \
    for (const Size& s : {kSquare, Size{28672, 4096, 0}, kDeep}) \
      for (int splits : {1, 2, 4, 8}) { \
        const int blocks = (s.rows + S::kRows - 1) / S::kRows * splits * ((tokens + S::kTokens - 1) / S::kTokens); \
        if (blocks <= 264 && blocks > 85) run.product<F, unit, S>(name, {s.rows, s.cols, tokens}, splits); \
      }
void part0(Run& run);
void part1(Run& run);
void part2(Run& run);
void part3(Run& run);
#if PART == 0
void part0(Run& run) {
  BIG(Q4_K, 128, E, "n128 g2 l1")
  FEW(Q4_K, 128, E, "n128 g2 l1", 256)
  BIG(Q4_K, 128, C, "n64 g2 l2 apart")
  FEW(Q4_K, 128, C, "n64 g2 l2 apart", 64, 128, 256)
}
#elif PART == 1
void part1(Run& run) {
  BIG(Q4_K, 128, D, "n64 g3 l1")
  run.product<Q5_K, 64, E>("n128 g2 l1", kSquare);
}
#elif PART == 2
void part2(Run& run) {
  FEW(Q4_K, 128, G1, "n32 g4 l1", 16, 32)
  FEW(Q4_K, 128, G3, "n32 g3 l2 apart", 32)
  FEW(Q4_K, 128, J, "n16 g4 l2 apart", 16)
}
#elif PART == 3
void part3(Run& run) {
  run.product<Q6_K, 32, A>("n96 g2 l1", kDeep);
  run.product<Q6_K, 32, C>("n64 g2 l2 apart", kDeep);
  run.product<Q8_0, 32, C>("n64 g2 l2 apart", kSquare);
  FEW(Q6_K, 32, G1, "n32 g4 l1", 32)
}
#else
}
int main(int argc, char** argv) {
  juno::gpu::Run run;
  const int part = std::atoi(argv[1]);
  if (argc > 2) run.only = argv[2];
  if (part == 0) juno::gpu::part0(run);
  if (part == 1) juno::gpu::part1(run);
  if (part == 2) juno::gpu::part2(run);
  if (part == 3) juno::gpu::part3(run);
  return run.failed ? 1 : 0;
}
namespace juno::gpu {
#endif
}
