// SPDX-License-Identifier: Apache-2.0
// What gpu_prompt.cu measures and holds to the definition: products of many tokens and attention of prompts,
// alone on the GPU at hand. Each result is one JSON object on a line: the variant, its shape, microseconds
// (the median), TFLOP/s, and how many values differ from the definition (quant/dot.h,
// ops/reference_attention.cc) compiled for the device.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backend/gpu/kernels/many.h"
#include "backend/gpu/kernels/prompt_attention.h"

namespace juno::gpu {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

template <class T>
T* device(size_t count, int fill = 0xff) {
  void* p = nullptr;
  check(cudaMalloc(&p, count * sizeof(T) + 4096), "cudaMalloc");
  check(cudaMemset(p, fill, count * sizeof(T) + 4096), "cudaMemset");
  return static_cast<T*>(p);
}

static __device__ uint32_t mixed(uint64_t i) {
  uint64_t x = i * 0x9e3779b97f4a7c15ull + 0x1234567;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 29;
  return static_cast<uint32_t>(x >> 16);
}

// Random weights, straight into the device's layout; bytes of the file's layout beside it. Scales are kept
// small.
template <class F>
__global__ void make_weights(typename F::Block* blocks, uint8_t* to, int64_t rows, int64_t cols) {
  const int64_t per_row = cols / F::block_size, i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i >= rows * per_row) return;
  typename F::Block b;
  auto* bytes = reinterpret_cast<uint8_t*>(&b);
  for (size_t j = 0; j < sizeof b; ++j) bytes[j] = static_cast<uint8_t>(mixed(i * 256 + j));
  if constexpr (requires { b.d; }) b.d = static_cast<uint16_t>(0x1000 + (mixed(i) & 0x83ff));
  if constexpr (requires { b.dmin; }) b.dmin = static_cast<uint16_t>(0x1000 + (mixed(i + 77) & 0x03ff));
  if constexpr (requires { b.m; }) b.m = static_cast<uint16_t>(0x1000 + (mixed(i + 77) & 0x83ff));
  blocks[i] = b;
  const int64_t row = i / per_row, block = i % per_row;
  for (int p = 0; p < kPlaneCount<F>; ++p) {
    const Plane plane = Layout<F>::planes().at[p];
    for (int u = 0; u < F::block_size / plane.elements; ++u)
      Layout<F>::put(b, p, plane.elements == F::block_size ? 0 : u,
                     to + row_offset<F>(p, rows, cols, row) +
                         (block * (F::block_size / plane.elements) + u) * kStrip * plane.bytes);
  }
}

static __global__ void make_floats(float* x, int64_t n, float scale) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < n) x[i] = scale * (static_cast<float>(mixed(i) & 0xffff) / 32768.0f - 1.0f);
}
static __global__ void make_halves(uint16_t* x, int64_t n, float scale) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < n) x[i] = float_to_half(scale * (static_cast<float>(mixed(i) & 0xffff) / 32768.0f - 1.0f));
}

// Counts values of y, [tokens, rows], that are not the definition's, among every `step`-th row.
static __global__ void quantise_rows(const float* x, int64_t k, int block, int8_t* q, float* d, int16_t* h,
                                     int tokens) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < tokens)
    quant::quantise_activations(x + t * k, k, block, q + t * k, d + t * (k / block), h + t * (k / 16));
}
template <class F>
__global__ void count_wrong(const typename F::Block* blocks, const float* y, const int8_t* q, const float* d,
                            const int16_t* h, int64_t k, int block, int tokens, int rows, int step,
                            uint32_t* wrong) {
  const int t = blockIdx.x, o = threadIdx.x * step;
  if (o >= rows || t >= tokens) return;
  const quant::ActivationRow row{nullptr, q + t * k, d + t * (k / block), h + t * (k / 16), k, block};
  const float want = quant::dot<F>(blocks + o * (k / F::block_size), row);
  if (bits_of(want) != bits_of(y[int64_t{t} * rows + o])) atomicAdd(wrong, 1);
  else atomicAdd(wrong + 1, 1);
}

// Microseconds of a call, of so many one after another.
template <class Call>
double median_us(Call&& call, int times = 9, int calls = 1) {
  cudaEvent_t from, to;
  check(cudaEventCreate(&from), "event");
  check(cudaEventCreate(&to), "event");
  std::vector<float> ms;
  for (int i = 0; i < times + 2; ++i) {
    check(cudaEventRecord(from), "record");
    for (int n = 0; n < calls; ++n) call();
    check(cudaEventRecord(to), "record");
    check(cudaEventSynchronize(to), "the kernel");
    float t = 0;
    check(cudaEventElapsedTime(&t, from, to), "elapsed");
    if (i >= 2) ms.push_back(t);
  }
  std::sort(ms.begin(), ms.end());
  return 1000.0 * ms[ms.size() / 2] / calls;
}

template <class F, int kUnit, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1) many(const __grid_constant__ ManyArgs a) {
  multiply_many<F, kUnit, Shape>(a);
}
static __global__ void __launch_bounds__(256, 1) round_kernel(const __grid_constant__ RoundArgs a) {
  round_panels(a);
}
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1) attend_kernel(const __grid_constant__ PromptArgs a) {
  attend_prompt<Shape>(a);
}

template <class Kernel>
bool fits(Kernel kernel, int shared, const std::string& name) {
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared) == cudaSuccess)
    return true;
  std::printf("{\"variant\":\"%s\",\"refused\":\"%d bytes of shared memory\"}\n", name.c_str(), shared);
  cudaGetLastError();
  return false;
}

struct Size {
  int rows, cols, tokens;
};

struct Run {
  std::string only;
  bool failed = false;
  int multiprocessors = [] {
    int n = 0;
    check(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0), "attribute");
    return n;
  }();
  float* x = device<float>(size_t{2048} * 14336);
  float* y = device<float>(size_t{2048} * 28672);
  uint8_t* blocks = device<uint8_t>(size_t{28672} * 4096 * 2);
  static constexpr size_t kWeightBytes = size_t{28672} * 4096 * 2;
  uint8_t* weights = device<uint8_t>(kWeightBytes);
  uint16_t* q = device<uint16_t>(size_t{2304} * 14336);
  uint16_t* h = device<uint16_t>(size_t{2304} * 1024);
  float* d = device<float>(size_t{2304} * 448);
  int8_t* q8 = device<int8_t>(size_t{2048} * 14336);
  float* d8 = device<float>(size_t{2048} * 448);
  int16_t* h8 = device<int16_t>(size_t{2048} * 896);
  uint32_t* wrong = device<uint32_t>(2);

  float* partial = device<float>(size_t{64} << 20);
  float* parked = device<float>(size_t{16} << 20);
  uint32_t* arrived = device<uint32_t>(1 << 16, 0);

  template <class F, int kUnit, class Shape>
  void product(const char* name, const Size& s, int splits = 1);
  template <class Shape>
  void attention(const char* name, int tokens, int before, int heads, int kv_heads, int dim);
};

template <class F, int kUnit, class Shape>
void Run::product(const char* name, const Size& s, int splits) {
  const std::string full = std::string(F::name) + "/" + name;
  if (full.find(only) == std::string::npos) return;
  const int block = quant::activation_block(F::block_size, s.cols), unit = kUnit;
  auto* file = reinterpret_cast<typename F::Block*>(blocks);
  const int64_t count = int64_t{s.rows} * s.cols / F::block_size;
  make_weights<F><<<static_cast<unsigned>((count + 127) / 128), 128>>>(file, weights, s.rows, s.cols);
  const int64_t n = int64_t{s.tokens} * s.cols;
  make_floats<<<static_cast<unsigned>((n + 255) / 256), 256>>>(x, n, 3.0f);
  check(cudaMemset(y, 0xff, size_t(s.tokens) * s.rows * 4), "memset");
  check(cudaMemset(wrong, 0, 8), "memset");
  const int padded = static_cast<int>(padded_to(s.tokens, Shape::kTokens));
  RoundArgs round{.from = {.x = x, .tokens = s.tokens, .k = s.cols, .block = block},
                  .y = {.q = q, .h = h, .d = d, .rows = padded}};
  round.q[unit / 64] = q;
  const dim3 pieces((s.cols + 1023) / 1024, padded);
  const double rounding = median_us([&] { round_kernel<<<pieces, 256, 1024>>>(round); }, 3, 4);
  // Copies, so that weights come from memory as they do where there are many of them.
  const size_t bytes = (plane_offset<F>(kPlaneCount<F>, s.rows, s.cols) + 255) / 256 * 256;
  const int copies = s.tokens > 512 ? 1 : static_cast<int>(std::min<size_t>(kWeightBytes / bytes, 16));
  for (int i = 1; i < copies; ++i)
    check(cudaMemcpy(weights + i * bytes, weights, bytes, cudaMemcpyDeviceToDevice), "copy");
  ManyArgs args{.parts = {{{weights, F::gguf_id, s.rows, s.cols, 0}, nullptr, y, s.rows}},
                .x = round.y,
                .rows = s.tokens,
                .k = s.cols,
                .block = block,
                .splits = splits,
                .partial = partial,
                .parked = parked,
                .arrived = arrived};
  const auto kernel = many<F, kUnit, Shape>;
  constexpr int kShared = Shape::kShared;
  if (!fits(kernel, kShared, full)) return;
  const int items = (s.tokens + Shape::kTokens - 1) / Shape::kTokens *
                    ((s.rows + Shape::kRows - 1) / Shape::kRows) * splits;
  const int grid = std::min(items, multiprocessors);
  int turn = 0;
  const auto call = [&] {
    args.parts[0].weight.data = weights + turn++ % copies * bytes;
    kernel<<<grid, Shape::kThreads, kShared>>>(args);
  };
  const double us = median_us(call, 5, s.tokens > 512 ? 1 : 8);
  quantise_rows<<<(s.tokens + 63) / 64, 64>>>(x, s.cols, block, q8, d8, h8, s.tokens);
  const int step = std::max(1, s.rows / 128);
  count_wrong<F><<<s.tokens, 128>>>(file, y, q8, d8, h8, s.cols, block, s.tokens, s.rows, step, wrong);
  uint32_t seen[2];
  check(cudaMemcpy(seen, wrong, 8, cudaMemcpyDeviceToHost), "copy");
  failed = failed || seen[0] != 0 || seen[1] == 0;
  const double flop = 2.0 * s.rows * s.cols * s.tokens;
  std::printf(
      "{\"variant\":\"%s\",\"splits\":%d,\"rows\":%d,\"cols\":%d,\"tokens\":%d,\"us\":%.1f,\"tflops\":%.1f,"
      "\"weight_tbs\":%"
      ".2f,"
      "\"round_us\":%.1f,\"wrong\":%u,\"right\":%u}\n",
      full.c_str(), splits, s.rows, s.cols, s.tokens, us, flop / us * 1e-6,
      static_cast<double>(bytes) / us * 1e-6, rounding, seen[0], seen[1]);
  std::fflush(stdout);
}

// One thread a row and head: the reference's loops.
static __global__ void count_wrong_attention(PromptArgs a, int rows, int stride, uint32_t* wrong) {
  const int r = blockIdx.x * stride + (blockIdx.x * 7) % stride, head = threadIdx.x;
  if (r >= rows || head >= a.heads) return;
  const Places& at = a.places;
  const int kv_head = head / (a.heads / at.kv_heads), position = at.positions[r];
  float o[256], c[256];
  float l = 0;
  int32_t n = 0;
  const int first = window_begin(position, a.window);
  const float* q = a.q + (int64_t{r} * a.heads + head) * at.key_dim;
  for (int chunk = first / 64; chunk <= position / 64; ++chunk) {
    const int start = chunk * 64, begin = max(first - start, 0), end = min(position - start + 1, 64);
    const int64_t row = (int64_t{at.pages[at.first_page[r] + chunk]} * at.kv_heads + kv_head) * 64;
    float w[64], tree[64];
    int32_t ns[64], top = INT32_MIN;
    for (int s = 0; s < 64; ++s) w[s] = 0;
    for (int s = begin; s < end; ++s) {
      float runs[32] = {};
      int count = 1;
      while (count * 8 < at.key_dim) count *= 2;
      for (int i = 0; i < at.key_dim; ++i)
        runs[i / 8] = fma(q[i], f16_to_f32(at.keys[(row + s) * at.key_dim + i]), runs[i / 8]);
      const float dot = quant::halving_tree(runs, count);
      const float t = a.capped ? tanh(dot * a.before) * a.after : dot * a.after;
      ns[s] = rne_int(t);
      w[s] = exp2_poly(t - rne(t));
      top = max(top, ns[s]);
    }
    for (int s = begin; s < end; ++s) w[s] = w[s] * power_of_2(ns[s] - top);
    for (int s = 0; s < 64; ++s) tree[s] = w[s];
    const float cl = quant::halving_tree(tree, 64);
    for (int d = 0; d < at.value_dim; ++d) {
      c[d] = 0;
      for (int s = begin; s < end; ++s)
        c[d] = fma(w[s], f16_to_f32(at.values[(row + s) * at.value_dim + d]), c[d]);
    }
    if (start <= first) {
      n = top;
      l = cl;
      for (int d = 0; d < at.value_dim; ++d) o[d] = c[d];
    } else {
      const int32_t both = max(n, top);
      const float keep = power_of_2(n - both), take = power_of_2(top - both);
      n = both;
      l = l * keep + cl * take;
      for (int d = 0; d < at.value_dim; ++d) o[d] = o[d] * keep + c[d] * take;
    }
  }
  for (int d = 0; d < at.value_dim; ++d)
    atomicAdd(wrong + (bits_of(o[d] / l) == bits_of(a.y[(int64_t{r} * a.heads + head) * at.value_dim + d])),
              1);
}

template <class Shape>
void Run::attention(const char* name, int tokens, int before, int heads, int kv_heads, int dim) {
  const std::string full = std::string("attention/") + name;
  if (full.find(only) == std::string::npos) return;
  const int pages = (before + tokens + 63) / 64, group = heads / kv_heads, per_tile = Shape::kRows / group;
  const int64_t cache = int64_t{pages} * kv_heads * 64 * dim;
  auto* keys = reinterpret_cast<uint16_t*>(blocks);
  auto* values = reinterpret_cast<uint16_t*>(weights);
  make_halves<<<static_cast<unsigned>((cache + 255) / 256), 256>>>(keys, cache, 2.0f);
  make_halves<<<static_cast<unsigned>((cache + 255) / 256), 256>>>(values, cache, 2.0f);
  const int64_t n = int64_t{tokens} * heads * dim;
  make_floats<<<static_cast<unsigned>((n + 255) / 256), 256>>>(x, n, 2.0f);
  std::vector<int32_t> positions, first(static_cast<size_t>(tokens), 0), table;
  for (int i = 0; i < tokens; ++i) positions.push_back(before + i);
  for (int i = 0; i < pages; ++i) table.push_back(pages - 1 - i);
  const auto sent = [](const std::vector<int32_t>& v) {
    auto* to = device<int32_t>(v.size());
    check(cudaMemcpy(to, v.data(), v.size() * 4, cudaMemcpyHostToDevice), "copy");
    return to;
  };
  const PromptArgs args{
      .q = x,
      .y = y,
      .places = {sent(positions), sent(first), sent(table), keys, values, kv_heads, dim, dim},
      .rows = tokens,
      .heads = heads,
      .after = 0.088388348f * 1.44269504f};
  check(cudaMemset(y, 0xff, size_t(tokens) * heads * dim * 4), "memset");
  check(cudaMemset(wrong, 0, 8), "memset");
  const auto kernel = attend_kernel<Shape>;
  if (!fits(kernel, Shape::kShared, full)) return;
  const dim3 grid(static_cast<unsigned>(kv_heads), static_cast<unsigned>((tokens + per_tile - 1) / per_tile));
  const double us = median_us([&] { kernel<<<grid, Shape::kThreads, Shape::kShared>>>(args); }, 5);
  const int stride = std::max(1, tokens / 64);
  count_wrong_attention<<<(tokens + stride - 1) / stride, 64>>>(args, tokens, stride, wrong);
  uint32_t seen[2];
  check(cudaMemcpy(seen, wrong, 8, cudaMemcpyDeviceToHost), "copy");
  failed = failed || seen[0] != 0 || seen[1] == 0;
  const double pairs = double(tokens) * before + double(tokens) * (tokens + 1) / 2;
  std::printf(
      "{\"variant\":\"%s\",\"tokens\":%d,\"before\":%d,\"heads\":%d,\"dim\":%d,\"us\":%.1f,\"tflops\":%.2f,"
      "\"wrong\":%u,\"right\":%u}\n",
      full.c_str(), tokens, before, heads, dim, us, pairs * heads * dim * 4 / us * 1e-6, seen[0], seen[1]);
  std::fflush(stdout);
}

}  // namespace juno::gpu
