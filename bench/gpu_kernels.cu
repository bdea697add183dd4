// SPDX-License-Identifier: Apache-2.0
// Kernels alone, on a GPU, in one go: each product checked against quant::dot to the bit, then timed in
// several variants; decoding attention; and all launches of one token of three models as one graph. Prints a
// table.
//   gpu_kernels [check|matvec|attention|tokens]…        all without arguments
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backend/gpu/kernels/list.h"
#include "backend/gpu/plan.h"
#include "backend/gpu/repack.h"
#include "quant/dot.h"
#include "quant/format_info.h"
#include "quant/formats.h"

using namespace juno;
using namespace juno::gpu;

#define DECLARE(name, Args, threads, blocks) \
  extern "C" __global__ void juno_##name(const __grid_constant__ juno::gpu::Args args);
JUNO_KERNELS(DECLARE)
namespace {

#define POINTER(name, Args, threads, blocks) reinterpret_cast<const void*>(juno_##name),
const void* const kFunctions[] = {JUNO_KERNELS(POINTER)};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::fflush(stdout);
  std::exit(1);
}

cudaStream_t stream;
Chip chip;
uint64_t seed = 88172645463325252ull;
uint64_t random_word() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

template <class T>
T* device(size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<size_t>(count * sizeof(T), 256)), "cudaMalloc");
  return static_cast<T*>(memory);
}
template <class T>
T* to_device(const std::vector<T>& from) {
  T* to = device<T>(from.size());
  check(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "copy to the device");
  return to;
}
__global__ void fill(uint32_t* to, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x)
    to[i] = (uint32_t(i) * 2654435761u ^ uint32_t(i >> 7) * 40503u) & 0x3bff3bffu;  // halves below 1
}
uint8_t* noise(size_t bytes) {
  auto* to = device<uint8_t>(bytes);
  fill<<<1024, 256>>>(reinterpret_cast<uint32_t*>(to), bytes / 4);
  check(cudaDeviceSynchronize(), "fill");
  return to;
}
float* floats(size_t n) {
  std::vector<float> x(n);
  for (float& v : x) v = float(int(random_word() % 2001) - 1000) / 500;
  return to_device(x);
}

struct How {
  int warps = 0;                    // of a block; 0: as planned
  uint32_t per_multiprocessor = 0;  // blocks
  bool few = false;                 // only where that is a strip for each warp
  bool early = true;                // programmatic dependent launch
};

const How kHows[] = {{8, 1}, {8, 2}, {12, 1}, {14, 1}, {16, 1}, {8, 1, true}, {16, 1, true}};
// Whether the kernels' registers and the shared memory allow it.
bool allowed(const How& how) {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, kFunctions[static_cast<int>(Kernel::matvec_Q4_K_1)]),
        "attributes");
  return how.warps * 32 <= attributes.maxThreadsPerBlock && how.warps * kRingBytes + 20000 <= 227 * 1024;
}

bool is_row_product(const Launch& l) {
  const auto kernel = static_cast<Kernel>(l.kernel);
  return (kernel >= Kernel::matvec_Q8_0_1 && kernel <= Kernel::matvec_MXFP4_1) ||
         (kernel >= Kernel::matvec_Q2_K_1 && kernel < Kernel::matvec_F32_2);
}

uint32_t rows_of(const Launch& l) {
  const auto& a = *reinterpret_cast<const MatvecArgs*>(l.args);
  uint32_t rows = 0;
  for (int i = 0; i < a.part_count; ++i) rows += uint32_t(a.parts[i].weight.rows);
  return rows;
}

void enqueue(Launch l, const How& how = {}) {
  if (how.warps && is_row_product(l) && (!how.few || l.grid.x * l.threads / 32 * 4 > rows_of(l))) {
    auto& a = *reinterpret_cast<MatvecArgs*>(l.args);
    l.threads = uint32_t(how.warps) * 32;
    l.grid.x = uint32_t(chip.multiprocessors) * how.per_multiprocessor;
    a.ring_times = rows_of(l) <= l.grid.x * uint32_t(how.warps / 2) * 4 ? 2 : 1;
    l.shared = uint32_t(a.ring_at + how.warps * kRingBytes);
  }
  cudaFuncSetAttribute(kFunctions[l.kernel], cudaFuncAttributeMaxDynamicSharedMemorySize, int(l.shared));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(l.grid.x, l.grid.y, l.grid.z);
  config.blockDim = dim3(l.threads);
  config.dynamicSmemBytes = l.shared;
  config.stream = stream;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = how.early ? 1 : 0;
  void* args[] = {l.args};
  check(cudaLaunchKernelExC(&config, kFunctions[l.kernel], args), "launch");
}

// Microseconds of one of `launches`, run as a graph; the median of several replays.
double time_graph(const std::vector<Launch>& launches, const How& how = {}) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  for (const Launch& l : launches) enqueue(l, how);
  check(cudaStreamEndCapture(stream, &graph), "end of capture");
  check(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 9; ++i) {
    cudaEventRecord(begin, stream);
    check(cudaGraphLaunch(ready, stream), "replay");
    cudaEventRecord(end, stream);
    check(cudaStreamSynchronize(stream), "replay");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i > 1) times.push_back(ms);
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] * 1000.0 / double(launches.size());
}

Weight noise_weight(uint32_t format, int rows, int cols) {
  const uint64_t bytes = device_bytes(format, rows, cols);
  return {noise(bytes), format, rows, cols, bytes};
}
uint64_t file_bytes(const Weight& w) {
  return uint64_t(quant::find_format(w.format)->row_bytes(w.cols)) * uint64_t(w.rows);
}
int block_of(const Weight& w) {
  const auto* f = quant::find_format(w.format);
  return f->is_float ? 0 : f->activation_block(w.cols);
}

// ---- bits
// ------------------------------------------------------------------------------------------------------
template <class F>
std::vector<typename F::Block> random_blocks(size_t count) {
  std::vector<typename F::Block> blocks(count);
  for (auto& b : blocks) {
    bool good = false;
    while (!good) {
      auto* bytes = reinterpret_cast<uint8_t*>(&b);
      for (size_t i = 0; i < sizeof b; ++i) bytes[i] = uint8_t(random_word() >> 24);
      good = true;
      for (int i = 0; i < F::block_size; ++i) good = good && std::abs(quant::value<F>(b, i)) < 1e4f;
    }
  }
  return blocks;
}

template <class F>
void check_format(int rows, int cols, int tokens) {
  const auto host = random_blocks<F>(size_t(rows) * cols / F::block_size);
  Weight w{device<uint8_t>(device_bytes(F::gguf_id, rows, cols)), F::gguf_id, rows, cols, 0};
  const auto* raw = reinterpret_cast<const uint8_t*>(to_device(host));
  if (quant::IntegerFormat<F>) enqueue(plan(RepackArgs{raw, w, 0, rows}));
  else
    check(
        cudaMemcpy(const_cast<uint8_t*>(w.data), raw, host.size() * sizeof host[0], cudaMemcpyDeviceToDevice),
        "copy");
  std::vector<float> x(size_t(tokens) * cols), got(size_t(tokens) * rows);
  for (float& v : x) v = float(int(random_word() % 20001) - 10000) / 5000;
  MatvecArgs a;
  a.parts[0] = {w, nullptr, device<float>(got.size()), rows};
  a.tokens = tokens;
  a.k = cols;
  a.block = block_of(w);
  a.from = to_device(x);
  enqueue(plan(a, chip)[0]);
  check(cudaMemcpy(got.data(), a.parts[0].y, got.size() * 4, cudaMemcpyDeviceToHost), F::name);
  const int block = quant::activation_block(F::block_size, cols);
  std::vector<int8_t> q(cols);
  std::vector<float> d(cols);
  std::vector<int16_t> h(cols);
  int wrong = 0, compared = 0;
  for (int t = 0; t < tokens; ++t) {
    const float* in = x.data() + size_t(t) * cols;
    quant::quantise_activations(in, cols, block, q.data(), d.data(), h.data());
    quant::ActivationRow row;
    row.x = in, row.q = q.data(), row.d = d.data(), row.h = h.data(), row.k = cols, row.block = block;
    for (int r = 0; r < rows; ++r, ++compared) {
      const float want = quant::dot<F>(host.data() + size_t(r) * (cols / F::block_size), row);
      wrong += std::memcmp(&want, &got[size_t(t) * rows + r], 4) != 0;
    }
  }
  std::printf("bits  %-7s %5d x %-5d tokens %d: %s (%d of %d differ)\n", F::name, rows, cols, tokens,
              wrong ? "WRONG" : "equal", wrong, compared);
  cudaFree(const_cast<uint8_t*>(raw));
  cudaFree(const_cast<uint8_t*>(w.data));
}
template <class... Fs>
void check_all(quant::List<Fs...>) {
  ((check_format<Fs>(97, 1024, 1), check_format<Fs>(66, 768, 3), check_format<Fs>(66, 4096, 8),
    check_format<Fs>(33, 14336, 2)),
   ...);
}

// ---- products
// --------------------------------------------------------------------------------------------------
struct Shape {
  const char* name;
  uint32_t format;
  int rows, cols;
  bool gated;
};
constexpr uint32_t kQ4 = quant::Q4_K::gguf_id, kQ6 = quant::Q6_K::gguf_id, kQ8 = quant::Q8_0::gguf_id;
const Shape kShapes[] = {{"8B o", kQ4, 4096, 4096, false},       {"8B gate+up", kQ4, 14336, 4096, true},
                         {"8B down", kQ4, 4096, 14336, false},   {"8B down Q6", kQ6, 4096, 14336, false},
                         {"8B head", kQ6, 128256, 4096, false},  {"8B o Q8", kQ8, 4096, 4096, false},
                         {"1B gate+up", kQ4, 8192, 2048, true},  {"1B down", kQ4, 2048, 8192, false},
                         {"135M gate+up", kQ8, 1536, 576, true}, {"135M head", kQ8, 49152, 576, false}};

MatvecArgs product_of(const Shape& s, const Weight& w, const Weight& up, int tokens) {
  MatvecArgs a;
  a.parts[0] = {w, nullptr, nullptr, s.rows};
  a.parts[1] = {up, nullptr, nullptr, s.rows};
  a.part_count = s.gated ? 2 : 1;
  a.epilogue = s.gated ? Epilogue::kGated : Epilogue::kStore;
  a.tokens = tokens;
  a.k = s.cols;
  a.block = block_of(w);
  return a;
}

void time_shape(const Shape& s) {
  const uint64_t one = device_bytes(s.format, s.rows, s.cols) * (s.gated ? 2 : 1);
  const int copies = int(std::clamp<uint64_t>((600ull << 20) / one, 2, 64));
  std::vector<Weight> weights;
  for (int i = 0; i < copies * (s.gated ? 2 : 1); ++i)
    weights.push_back(noise_weight(s.format, s.rows, s.cols));
  float *x = floats(size_t(8) * s.cols), *y = device<float>(size_t(8) * s.rows), *norm = floats(s.cols);
  const double bytes = double(file_bytes(weights[0])) * (s.gated ? 2 : 1);
  const Rounded rounded{reinterpret_cast<int8_t*>(noise(size_t(8) * s.cols)), floats(size_t(8) * s.cols / 32),
                        reinterpret_cast<uint32_t*>(noise(size_t(s.cols)))};
  bool ready = false;
  const auto launches = [&](int tokens, Source source) {
    std::vector<Launch> all;
    for (int i = 0; i < copies; ++i) {
      MatvecArgs a = product_of(s, weights[s.gated ? 2 * i : i], weights[s.gated ? 2 * i + 1 : i], tokens);
      a.parts[0].y = y;
      if (ready) a.x = rounded;
      else a.from = x;
      a.source = source;
      a.norm.weight = norm;
      all.push_back(plan(a, chip)[0]);
    }
    return all;
  };
  const auto print = [&](const std::string& what, double us) {
    std::printf("time  %-13s %-44s %8.2f us %7.1f GB/s\n", s.name, what.c_str(), us, bytes / us / 1000);
  };
  print("as planned", time_graph(launches(1, Source::kPlain)));
  print("as planned, norm inside", time_graph(launches(1, Source::kNorm)));
  ready = true;
  print("as planned, rounded before", time_graph(launches(1, Source::kPlain)));
  ready = false;
  print("as planned, one after another", time_graph(launches(1, Source::kPlain), {.early = false}));
  for (const How& how : kHows) {
    if (how.few || !allowed(how)) continue;
    print(std::to_string(how.warps) + " warps x " + std::to_string(how.per_multiprocessor),
          time_graph(launches(1, Source::kPlain), how));
  }
  for (const int tokens : {2, 4, 8})
    print(std::to_string(tokens) + " tokens", time_graph(launches(tokens, Source::kPlain)));
  for (const Weight& w : weights) cudaFree(const_cast<uint8_t*>(w.data));
}

// ---- attention
// -------------------------------------------------------------------------------------------------
struct Model {
  const char* name;
  uint32_t format, tall;  // of most weights, and of the head
  int layers, dim, heads, kv_heads, head_dim, ffn, vocab;
};
const Model kModels[] = {{"8B Q4_K_M", kQ4, kQ6, 32, 4096, 32, 8, 128, 14336, 128256},
                         {"1B Q4_K_M", kQ4, kQ6, 16, 2048, 32, 8, 64, 8192, 128256},
                         {"135M Q8_0", kQ8, kQ8, 30, 576, 9, 3, 64, 1536, 49152}};

struct Cached {
  Places places;
  AttendArgs attend;
  Cached(const Model& m, int rows, int depth) {
    const int chunks = depth / 64 + 1;
    std::vector<int32_t> positions(rows, depth), first(rows), pages(size_t(rows) * chunks);
    for (int r = 0; r < rows; ++r) first[r] = r * chunks;
    for (size_t i = 0; i < pages.size(); ++i) pages[i] = int32_t(i);
    const size_t bytes = pages.size() * m.kv_heads * 64 * m.head_dim * 2;
    places = {to_device(positions),
              to_device(first),
              to_device(pages),
              reinterpret_cast<uint16_t*>(noise(bytes)),
              reinterpret_cast<uint16_t*>(noise(bytes)),
              m.kv_heads,
              m.head_dim,
              m.head_dim};
    attend.prepare.q = floats(size_t(rows) * m.heads * m.head_dim);
    attend.y = device<float>(size_t(rows) * m.heads * m.head_dim);
    attend.places = places;
    attend.rows = rows;
    attend.heads = m.heads;
    attend.max_chunks = chunks;
    attend.after = 0.1f;
    const size_t parts = attend_plan(attend, chip).parts;
    attend.parts = parts ? device<float>(parts) : nullptr;
  }
  void release() {
    for (const void* p : {static_cast<const void*>(places.keys), static_cast<const void*>(places.values)})
      cudaFree(const_cast<void*>(p));
  }
};

void time_attention() {
  for (const auto& [rows, depth] :
       {std::pair{1, 512}, {1, 4096}, {1, 16384}, {1, 131000}, {32, 1024}, {256, 512}}) {
    const Model& m = kModels[0];
    Cached c(m, rows, depth);
    const double bytes = double(rows) * (depth + 1) * m.kv_heads * m.head_dim * 4;
    const double us = time_graph(std::vector<Launch>(16, plan_attend(c.attend, attend_plan(c.attend, chip))));
    const double merge =
        c.attend.parts ? time_graph(std::vector<Launch>(16, plan_attend_merge(c.attend))) : 0;
    std::printf("time  attention     %3d rows at %6d %31.2f us %7.1f GB/s, merge %.2f us\n", rows, depth, us,
                bytes / us / 1000, merge);
    c.release();
  }
}

// ---- a token
// ---------------------------------------------------------------------------------------------------
// All launches of one decoded token, over noise.
class Token {
 public:
  Token(const Model& model, int depth) : m(model), cache(model, 1, depth) {
    for (int i = 0; i < m.layers; ++i) layer(i % 2 ? m.tall : m.format);
    all.push_back(plan(product(weight(m.tall, m.vocab, m.dim), x, logits, true), chip)[0]);
    all.push_back(plan(TopArgs{.logits = logits,
                               .first = to_device(std::vector<int32_t>{0, 50}),
                               .arrived = to_device(std::vector<uint32_t>{0}),
                               .parts = device<uint64_t>(size_t(kMostTop) * top_pieces(m.vocab)),
                               .top = device<Pair32>(kMostTop),
                               .rows = 1,
                               .columns = m.vocab,
                               .n = m.vocab}));
  }
  void time(int depth) {
    const double us = time_graph(all) * double(all.size());
    for (const How& how : kHows) {
      if (!allowed(how)) continue;
      std::printf("token %-10s depth %5d, %s %2d warps x %u: %8.1f us\n", m.name, depth,
                  how.few ? "few" : "all", how.warps, how.per_multiprocessor,
                  time_graph(all, how) * double(all.size()));
    }
    std::printf("token %-10s depth %5d: %8.1f us, %6.0f t/s, %4zu launches, weights at %6.1f GB/s\n", m.name,
                depth, us, 1e6 / us, all.size(), bytes / us / 1000);
    cache.release();
    for (const Weight& w : weights) cudaFree(const_cast<uint8_t*>(w.data));
  }

 private:
  Weight weight(uint32_t format, int rows, int cols) {
    weights.push_back(noise_weight(format, rows, cols));
    bytes += double(file_bytes(weights.back()));
    return weights.back();
  }
  MatvecArgs product(const Weight& w, const float* from, float* y, bool normed) const {
    MatvecArgs a;
    a.parts[0] = {w, nullptr, y, w.rows};
    a.tokens = 1;
    a.k = w.cols;
    a.block = block_of(w);
    a.from = from;
    a.source = normed ? Source::kNorm : Source::kPlain;
    a.norm.weight = norm;
    return a;
  }
  void add_product(MatvecArgs a) {
    a.epilogue = Epilogue::kAdd;
    a.residual = x;
    all.push_back(plan(a, chip)[0]);
  }
  void layer(uint32_t tall);

  const Model& m;
  Cached cache;
  const int q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  float *x = floats(m.dim), *norm = floats(std::max(m.dim, m.ffn)), *qkv = device<float>(q + 2 * kv);
  float *inner = device<float>(m.ffn), *logits = device<float>(m.vocab), *table = floats(m.head_dim);
  double bytes = 0;
  std::vector<Weight> weights;
  std::vector<Launch> all;
};

void Token::layer(uint32_t tall) {
  MatvecArgs a = product(weight(m.format, q, m.dim), x, qkv, true);
  a.parts[1] = {weight(m.format, kv, m.dim), nullptr, qkv + q, kv};
  a.parts[2] = {weight(tall, kv, m.dim), nullptr, qkv + q + kv, kv};
  a.part_count = 3;
  all.push_back(plan(a, chip)[0]);
  AttendArgs attend = cache.attend;
  PrepareArgs& before = attend.prepare;
  before.q = qkv, before.k = qkv + q, before.v = qkv + q + kv;
  before.q_stride = q, before.k_stride = before.v_stride = kv;
  before.table = table;
  before.rope = {m.head_dim, m.head_dim / 2, 0};
  before.places = cache.places;
  before.rows = 1;
  before.heads = m.heads;
  all.push_back(plan_attend(attend, attend_plan(attend, chip)));
  if (attend.parts) all.push_back(plan_attend_merge(attend));
  add_product(product(weight(m.format, m.dim, q), cache.attend.y, x, false));
  a = product(weight(m.format, m.ffn, m.dim), x, inner, true);
  a.parts[1] = {weight(m.format, m.ffn, m.dim), nullptr, inner, m.ffn};
  a.part_count = 2;
  a.epilogue = Epilogue::kGated;
  all.push_back(plan(a, chip)[0]);
  add_product(product(weight(tall, m.dim, m.ffn), inner, x, false));
}

}  // namespace

int main(int count, char** names) {
  const auto asked = [&](const char* what) {
    for (int i = 1; i < count; ++i)
      if (std::strcmp(names[i], what) == 0) return true;
    return count == 1;
  };
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "device");
  chip.multiprocessors = properties.multiProcessorCount;
  check(cudaStreamCreate(&stream), "stream");
  std::printf("%s, %d multiprocessors\n", properties.name, chip.multiprocessors);
  if (asked("check")) check_all(quant::Formats{});
  if (asked("attention")) time_attention();
  if (asked("tokens"))
    for (const Model& m : kModels)
      for (const int depth : {128, 4096, 16384}) Token(m, depth).time(depth);
  if (asked("matvec"))
    for (const Shape& s : kShapes) time_shape(s);
  return 0;
}
