// SPDX-License-Identifier: Apache-2.0
// Words of the many-token kernels, for nvcc: products of a warpgroup with a tile of shared memory, pairs of
// halves, and barriers that threads may pass one after the other. On Hopper the tile goes to the tensor cores
// straight from shared memory (wgmma); anything older loads it into fragments (mma.sync). Registers are laid
// out alike.
#pragma once
#include "backend/gpu/kernels/gpu.h"
#include "backend/gpu/kernels/prompt_shapes.h"

namespace juno::gpu {

JUNO_GPU uint32_t in_shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// ---- pairs of halves: each half a * b + c, rounded once
// ------------------------------------------------------
JUNO_GPU uint32_t fma_halves(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// The bits of x under the mask, and 1024 as halves: one instruction, which the compiler makes two of.
JUNO_GPU uint32_t masked_over_1024(uint32_t x, uint32_t mask) {
  uint32_t y;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(x), "r"(mask), "r"(0x64006400u));
  return y;
}

#if __CUDA_ARCH__ >= 900
#define JUNO_TRY_WAIT "mbarrier.try_wait.parity.shared.b64"  // sleeps a while
#else
#define JUNO_TRY_WAIT "mbarrier.test_wait.parity.shared.b64"
#endif
// ---- a barrier in shared memory: phase after phase, each ended by `count` arrivals
// ------------------------------
struct Arrivals {
  uint64_t state;

  JUNO_GPU void init(int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(in_shared(&state)), "r"(count) : "memory");
  }
  JUNO_GPU void arrive() {
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(in_shared(&state)) : "memory");
  }
  // Returns once the phase of this parity is over.
  JUNO_GPU void wait(int parity) {
    asm volatile("{\n .reg .pred p;\n again:\n " JUNO_TRY_WAIT
                 " p, [%0], %1;\n @p bra done;\n bra "
                 "again;\n"
                 " done:\n }" ::"r"(in_shared(&state)),
                 "r"(parity)
                 : "memory");
  }
};

// What init wrote is there for copies too; a barrier of the block follows.
JUNO_GPU void arrivals_ready() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
// Arrives once what this thread copied before is there.
JUNO_GPU void copies_arrive(Arrivals& landed) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(in_shared(&landed.state)) : "memory");
}

#if __CUDA_ARCH_FEAT_SM90_ALL
// ---- a warp fetches some stretches of memory: `landed` counts kFetchArrivals more when all are there
// ----------------
inline constexpr int kFetchArrivals = 1;
JUNO_GPU void fetch_begin(Arrivals& landed, int bytes) {
  if (lane() == 0)
    asm volatile(
        "{ .reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t, [%0], %1; }" ::"r"(in_shared(&landed.state)),
        "r"(bytes)
        : "memory");
}
JUNO_GPU void fetch(Arrivals& landed, void* to, const void* from, int bytes) {
  if (lane() == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            in_shared(to)),
        "l"(from), "r"(bytes), "r"(in_shared(&landed.state))
        : "memory");
}
JUNO_GPU void fetch_end(Arrivals&) {}
#else
inline constexpr int kFetchArrivals = kWarp;
JUNO_GPU void fetch_begin(Arrivals&, int) {}
JUNO_GPU void fetch(Arrivals&, void* to, const void* from, int bytes) {
  for (int i = lane() * 16; i < bytes; i += kWarp * 16)
    copy_async16(static_cast<char*>(to) + i, static_cast<const char*>(from) + i);
}
JUNO_GPU void fetch_end(Arrivals& landed) { copies_arrive(landed); }
#endif

// ---- a warpgroup gives registers away, or takes what others gave
template <int kCount>
JUNO_GPU void keep_registers() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}
template <int kCount>
JUNO_GPU void take_registers() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}

// ---- products: c[16 x 8 kTiles] of each of four warps += a[16 x 16] b[16 x 8 kTiles]
// -------------------------------- c and a are fragments as PTX lays them out for m16n8k16. b lies in shared
// memory in pieces of 8 tokens x 8 halves, 128 bytes each: a token group's pieces follow each other, groups
// are kGroupBytes apart.
#if __CUDA_ARCH_FEAT_SM90_ALL

// A matrix descriptor: where, the way to the next piece and to the next group in bytes, and whether shuffled.
JUNO_GPU uint64_t tile_of(const void* b, uint32_t next_piece, uint32_t next_group, uint32_t swizzled = 0) {
  return static_cast<uint64_t>((in_shared(b) & 0x3ffff) >> 4) | static_cast<uint64_t>(next_piece >> 4) << 16 |
         static_cast<uint64_t>(next_group >> 4) << 32 | static_cast<uint64_t>(swizzled) << 62;
}
// Registers and copied tiles are ready.
JUNO_GPU void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
JUNO_GPU void products_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
JUNO_GPU void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
template <int kPending, int kCount>
JUNO_GPU void products_wait(float (&c)[kCount]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
  JUNO_UNROLL
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(c[i])::"memory");
}
// What this thread loaded from a tile is there, so that the tile may be fetched over: a load that waits
// behind others' stores is overtaken otherwise (seen on an H200).
JUNO_GPU void tiles_read() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define JUNO_C4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define JUNO_C16(i) JUNO_C4(i), JUNO_C4(i + 4), JUNO_C4(i + 8), JUNO_C4(i + 12)
#define JUNO_WGMMA(n, regs, a0, a1, a2, a3, b, fresh)                                      \
  "{\n .reg .pred p;\n setp.eq.u32 p, " fresh ", 0;\n wgmma.mma_async.sync.aligned.m64n" n \
  "k16.f32.f16.f16 {" regs "}, {" a0 "," a1 "," a2 "," a3 "}, " b ", p, 1, 1, 0;\n}"
#define JUNO_AB "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(fresh))

JUNO_GPU void wgmma(float (&c)[4], const uint32_t (&a)[4], uint64_t b, bool fresh) {
  asm volatile(JUNO_WGMMA("8", "%0,%1,%2,%3", "%4", "%5", "%6", "%7", "%8", "%9") : JUNO_C4(0) : JUNO_AB);
}
JUNO_GPU void wgmma(float (&c)[8], const uint32_t (&a)[4], uint64_t b, bool fresh) {
  asm volatile(JUNO_WGMMA("16", "%0,%1,%2,%3,%4,%5,%6,%7", "%8", "%9", "%10", "%11", "%12", "%13")
               : JUNO_C4(0), JUNO_C4(4)
               : JUNO_AB);
}
#define JUNO_R16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define JUNO_R32 JUNO_R16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define JUNO_R64                                                                                  \
  JUNO_R32                                                                                        \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54," \
  "%55,%56,%57,%58,%59,%60,%61,%62,%63"
JUNO_GPU void wgmma(float (&c)[16], const uint32_t (&a)[4], uint64_t b, bool fresh) {
  asm volatile(JUNO_WGMMA("32", JUNO_R16, "%16", "%17", "%18", "%19", "%20", "%21") : JUNO_C16(0) : JUNO_AB);
}
JUNO_GPU void wgmma(float (&c)[32], const uint32_t (&a)[4], uint64_t b, bool fresh) {
  asm volatile(JUNO_WGMMA("64", JUNO_R32, "%32", "%33", "%34", "%35", "%36", "%37")
               : JUNO_C16(0), JUNO_C16(16)
               : JUNO_AB);
}
JUNO_GPU void wgmma(float (&c)[64], const uint32_t (&a)[4], uint64_t b, bool fresh) {
  asm volatile(JUNO_WGMMA("128", JUNO_R64, "%64", "%65", "%66", "%67", "%68", "%69")
               : JUNO_C16(0), JUNO_C16(16), JUNO_C16(32), JUNO_C16(48)
               : JUNO_AB);
}

JUNO_GPU void wgmma(float (&c)[24], const uint32_t (&a)[4], uint64_t b, bool fresh) {
  asm volatile(JUNO_WGMMA("48",
                          "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                          "%16,%17,%18,%19,%20,%21,%22,%23",
                          "%24", "%25", "%26", "%27", "%28", "%29")
               : JUNO_C16(0), JUNO_C4(16), JUNO_C4(20)
               : JUNO_AB);
}
JUNO_GPU void wgmma(float (&c)[48], const uint32_t (&a)[4], uint64_t b, bool fresh) {
  asm volatile(JUNO_WGMMA("96",
                          "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                          "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                          "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47",
                          "%48", "%49", "%50", "%51", "%52", "%53")
               : JUNO_C16(0), JUNO_C16(16), JUNO_C16(32)
               : JUNO_AB);
}

// b: token rows from `first` on, a multiple of 8, of a tile of kRows.
template <int kRows, int kCount>
JUNO_GPU void multiply(float (&c)[kCount], const uint32_t (&a)[4], const unsigned char* tile, int first,
                       int piece, bool fresh) {
  wgmma(c, a, tile_of(tile, 16, 1024, 1) + (piece_at(kRows, first, piece) >> 4), fresh);
}
// b is one piece, 128 bytes a group; the upper half of a is zero.
template <int kCount>
JUNO_GPU void multiply_half(float (&c)[kCount], const uint32_t (&a)[2], const unsigned char* b) {
  const uint32_t whole[4] = {a[0], a[1], 0, 0};
  wgmma(c, whole, tile_of(b, 0, 128), true);
}
#else
JUNO_GPU void products_begin() {}
JUNO_GPU void products_end() {}
template <int kPending>
JUNO_GPU void products_wait() {}
template <int kPending, int kCount>
JUNO_GPU void products_wait(float (&)[kCount]) {}
JUNO_GPU void tiles_read() {}

JUNO_GPU void mma_half(float (&c)[4], const uint32_t (&a)[2], uint32_t b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(b));
}
template <int kRows, int kCount>
JUNO_GPU void multiply(float (&c)[kCount], const uint32_t (&a)[4], const unsigned char* b, int first,
                       int piece, bool fresh) {
  JUNO_UNROLL
  for (int j = 0; j < kCount / 4; ++j) {
    uint32_t tile[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(tile[0]), "=r"(tile[1])
                 : "r"(in_shared(b + piece_at(kRows, first + 8 * j + lane() % 8, piece + lane() / 8 % 2)))
                 : "memory");
    float sum[4];
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) sum[i] = fresh ? 0.0f : c[4 * j + i];
    mma_f16(sum, a, tile);
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) c[4 * j + i] = sum[i];
  }
}
template <int kCount>
JUNO_GPU void multiply_half(float (&c)[kCount], const uint32_t (&a)[2], const unsigned char* b) {
  JUNO_UNROLL
  for (int j = 0; j < kCount / 4; ++j) {
    float sum[4] = {};
    mma_half(sum, a, *reinterpret_cast<const uint32_t*>(b + j * 128 + lane() * 4));
    JUNO_UNROLL
    for (int i = 0; i < 4; ++i) c[4 * j + i] = sum[i];
  }
}
#endif

}  // namespace juno::gpu
