// SPDX-License-Identifier: Apache-2.0
// Products and mixtures of experts on all threads, a stage at a time: activations are packed once for all
// products that read them, then the outputs of all are shared out in pieces, and what follows a product is
// done while its piece is near.
#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "ops/weight.h"

namespace juno::cpu {
namespace {

constexpr int kPiecesPerThread = 8;  // so that a thread which starts late or is held up leaves little undone
constexpr int64_t kPieceBytes = 32 << 10, kLargestPiece = 256 << 10;  // of weights read for few tokens
constexpr int64_t kPackedAlone = 4096;  // elements: below, waking another thread costs more than it saves

Product product(const CpuDevice& device, int64_t tokens, const Tensor& weight, ops::Activations activations) {
  const quant::FormatInfo& format = ops::format_of(weight);
  const FormatKernels& own = device.kernels_of(weight);
  const CpuDevice::Place place = device.place_of(weight);
  Product p = own.product();
  p.turned = place.turned;
  p.weight = place.data;
  p.row_bytes = format.row_bytes(weight.cols());
  p.k = weight.cols();
  p.outputs = weight.rows();
  p.block = format.activation_block(weight.cols());
  p.tokens = static_cast<int>(tokens);
  p.planes = activations == ops::Activations::kInt8x2 && !format.is_float ? 2 : 1;
  return p;
}

size_t packed_bytes(const Product& p) {
  return static_cast<size_t>(p.pack_items()) * p.planes * p.packed_bytes();
}

// Of this product and of the same with fewer tokens, of which some layouts take more room.
size_t most_packed(Product p) {
  const size_t own = packed_bytes(p);
  if (!p.many()) return own;
  p.tokens = Product::kManyTokens - 1;
  return std::max(own, packed_bytes(p));
}
size_t most_scratch(Product p) {
  const size_t own = p.scratch_bytes();
  if (!p.many()) return own;
  p.tokens = 1;
  return std::max(own, p.scratch_bytes());
}

// Whether what is packed for one serves the other, both being products of the same x.
bool same_packing(const Product& a, const Product& b) {
  if (a.panels != b.panels || a.block != b.block || a.planes != b.planes) return false;
  return !a.panels || (a.cell == b.cell && a.times == b.times && a.width() == b.width());
}

size_t tensor_bytes(int64_t rows, int64_t cols) {
  return aligned(static_cast<size_t>(rows * cols) * sizeof(float));
}

}  // namespace

// Kernels do the work of kPieceRows or kPairRows for a piece of fewer.
int64_t CpuOps::Stage::piece(const Job& job, int threads) const {
  const Product& p = job.product;
  const int64_t pieces = int64_t{threads} * kPiecesPerThread;
  if (p.many()) return std::clamp<int64_t>(p.outputs / pieces / kPairRows * kPairRows, kPairRows, kItemRows);
  const int64_t bytes = std::clamp(weight_bytes / pieces, kPieceBytes, kLargestPiece);
  return std::max<int64_t>(bytes / (p.row_bytes * together) / kPieceRows * kPieceRows, kPieceRows);
}

CpuOps::Job CpuOps::job(int64_t tokens, const ops::Linear& w) const {
  Job job{product(device_, tokens, w.weight, activations()), &device_.kernels_of(w.weight)};
  job.product.bias = w.bias ? w.bias.f32() : nullptr;
  job.packs = !ops::format_of(w.weight).is_float;
  return job;
}

template <class After>
void CpuOps::run_stage(const Stage& stage, After&& after) {
  int items = 0;
  int64_t work = 0;
  for (const Job& job : stage.jobs) {
    if (!job.packs) continue;
    items += job.product.pack_items();
    work += job.product.tokens * job.product.k;
  }
  const auto pack = [&](int item, int thread) {
    auto job = stage.jobs.begin();
    for (; !job->packs || item >= job->product.pack_items(); ++job)
      if (job->packs) item -= job->product.pack_items();
    kernels_.pack(job->product, item, stage.own + thread * stage.own_bytes);
  };
  if (work < kPackedAlone)
    for (int item = 0; item < items; ++item) pack(item, 0);
  else pool_->parallel_for(items, pack);

  const size_t step = static_cast<size_t>(stage.together);
  const auto pieces_of = [&](const Job& job) {
    const int64_t piece = stage.piece(job, threads());
    return static_cast<int>((job.product.outputs + piece - 1) / piece);
  };
  int pieces = 0;
  for (size_t i = 0; i < stage.jobs.size(); i += step) pieces += pieces_of(stage.jobs[i]);
  pool_->parallel_for(pieces, [&](int index, int thread) {
    size_t i = 0;
    for (int count; index >= (count = pieces_of(stage.jobs[i])); i += step) index -= count;
    const int64_t piece = stage.piece(stage.jobs[i], threads()), first = index * piece;
    const int64_t last = std::min(first + piece, stage.jobs[i].product.outputs);
    for (size_t j = i; j < i + step; ++j)
      stage.jobs[j].format->multiply(stage.jobs[j].product, first, last,
                                     stage.own + thread * stage.own_bytes);
    after(stage.jobs[i].product, stage.jobs[i + step - 1].product, first, last);
  });
}

size_t CpuOps::products_scratch(const Products& p) const {
  size_t packed = 0, own = 0;
  for (const ops::Linear* w : p.w) {
    const Product one = job(p.x.rows(), *w).product;
    packed += most_packed(one);
    own = std::max(own, most_scratch(one));
  }
  const size_t gate = p.gated ? tensor_bytes(p.x.rows(), p.y[0].cols()) : 0;
  return packed + gate + static_cast<size_t>(threads()) * own;
}

void CpuOps::do_products(const Products& p, std::byte* scratch) {
  Job jobs[kMostProducts];
  Stage stage{.jobs = {jobs, p.w.size()}, .together = p.gated ? 2 : 1};
  for (size_t i = 0; i < p.w.size(); ++i) {
    Job& own = jobs[i] = job(p.x.rows(), *p.w[i]);
    own.product.x = p.x.f32();
    own.product.y = p.y[p.gated ? 0 : i].f32();
    own.product.packed = scratch;
    const Job* same = std::find_if(jobs, jobs + i, [&](const Job& other) {
      return other.packs && same_packing(other.product, own.product);
    });
    if (own.packs && same != jobs + i) {
      own.product.packed = same->product.packed;
      own.packs = false;
    } else {
      scratch += packed_bytes(own.product);
    }
    stage.own_bytes = std::max(stage.own_bytes, own.product.scratch_bytes());
    stage.weight_bytes += own.product.outputs * own.product.row_bytes;
  }
  if (p.gated) {
    jobs[1].product.y = reinterpret_cast<float*>(scratch);
    scratch += tensor_bytes(p.x.rows(), p.y[0].cols());
  }
  stage.own = scratch;
  run_stage(stage, [&](const Product& first_of, const Product& last_of, int64_t first, int64_t last) {
    if (!p.gated && !p.plus) return;
    for (int64_t t = 0; t < first_of.tokens; ++t) {
      const int64_t at = t * first_of.outputs + first;
      float* y = first_of.y + at;
      if (p.gated) kernels_.gated[static_cast<int>(*p.gated)](y, y, last_of.y + at, last - first);
      else kernels_.add(y, p.plus->f32() + at, y, last - first);
    }
  });
}

size_t CpuOps::linear_scratch(const Tensor& x, const ops::Linear& w) const {
  const ops::Linear* const one = &w;
  return products_scratch({.x = x, .w = {&one, 1}, .y = {}});
}

void CpuOps::do_linear(const Tensor& y, const Tensor& x, const ops::Linear& w, std::byte* scratch) {
  const ops::Linear* const one = &w;
  do_products({.x = x, .w = {&one, 1}, .y = {&y, 1}}, scratch);
}

// Rows of a mixture: each token once for each expert that it chose, one expert's rows after the other's. A
// wave is as many whole experts as there is room for, which for few tokens is all of them.
struct CpuOps::Wave {
  static constexpr int64_t kFew = 64;
  const Tensor& x;
  const ops::Experts& w;
  int64_t top_k, room;     // room: rows of a wave
  int32_t *begin, *token;  // [experts + 1] where each one's rows begin; [tokens*top_k] of each row
  float* weight;           // [tokens*top_k]
  float *in, *gate, *up;   // [room, dim], [room, ffn] twice; what the experts return overwrites `in`
  Job* jobs;               // [2 experts]
  std::byte *packed, *own;
  size_t own_bytes, bytes;  // bytes: of everything

  Wave(const CpuOps& ops, const Tensor& rows, const ops::Experts& experts, int64_t chosen,
       std::byte* scratch);
  int64_t tokens() const { return x.rows(); }
};

CpuOps::Wave::Wave(const CpuOps& ops, const Tensor& rows, const ops::Experts& experts, int64_t chosen,
                   std::byte* scratch)
    : x(rows),
      w(experts),
      top_k(chosen),
      room(std::max(rows.rows(), std::min(rows.rows() * chosen, kFew))),
      own_bytes(0) {
  const int64_t count = w.gate.shape.planes, all = tokens() * top_k;
  const auto start = reinterpret_cast<uintptr_t>(scratch);
  uintptr_t next = start;
  const auto carve = [&]<class T>(T*& to, size_t size) {
    to = reinterpret_cast<T*>(next);
    next += aligned(size * sizeof(T));
  };
  carve(begin, count + 1);
  carve(token, all);
  carve(weight, all);
  carve(in, room * x.cols());
  carve(gate, room * w.gate.rows());
  carve(up, room * w.gate.rows());
  carve(jobs, 2 * count);
  size_t most = 0;  // packed bytes of a row: alone, or its share of a tile that is not full
  for (const Tensor& weights : {w.gate, w.up, w.down}) {
    for (const int64_t n : {int64_t{1}, int64_t{Product::kManyTokens}, tokens()}) {
      const Product p = product(ops.device_, n, ops::plane(weights, 0), ops.activations());
      most = std::max(most, packed_bytes(p) / static_cast<size_t>(n) + 1);
      own_bytes = std::max(own_bytes, p.scratch_bytes());
    }
  }
  carve(packed, 2 * room * most);
  carve(own, own_bytes * ops.threads());
  bytes = next - start;
}

size_t CpuOps::experts_scratch(const Tensor& x, const ops::Experts& w, int top_k) const {
  return Wave(*this, x, w, top_k, nullptr).bytes;
}

// Sorts the choices by expert, tokens ascending.
void CpuOps::sort_choices(const Wave& wave, const ops::Routes& routes) {
  const int64_t count = wave.w.gate.shape.planes, all = wave.tokens() * wave.top_k;
  std::fill_n(wave.begin, count + 1, 0);
  for (int64_t i = 0; i < all; ++i) ++wave.begin[routes.ids.i32()[i] + 1];
  for (int64_t e = 0; e < count; ++e) wave.begin[e + 1] += wave.begin[e];
  for (int64_t i = 0; i < all; ++i) {
    const int32_t row = wave.begin[routes.ids.i32()[i]]++;
    wave.token[row] = static_cast<int32_t>(i / wave.top_k);
    wave.weight[row] = routes.weights.f32()[i];
  }
  std::copy_backward(wave.begin, wave.begin + count, wave.begin + count + 1);
  wave.begin[0] = 0;
}

// One stage of a wave: experts [first, last), `in` times gate and up, or gate times down. Experts that nobody
// chose have no job.
CpuOps::Stage CpuOps::stage_of(const Wave& wave, int64_t first, int64_t last, bool down) const {
  std::byte* packed = wave.packed;
  size_t n = 0;
  Stage stage{.jobs = {}, .together = down ? 1 : 2, .own = wave.own, .own_bytes = wave.own_bytes};
  for (int64_t e = first; e < last; ++e) {
    const int64_t row = wave.begin[e] - wave.begin[first], rows = wave.begin[e + 1] - wave.begin[e];
    if (rows == 0) continue;
    for (int i = 0; i < stage.together; ++i) {
      const Tensor& of = down ? wave.w.down : i == 0 ? wave.w.gate : wave.w.up;
      Job& own = wave.jobs[n] = job(rows, {.weight = ops::plane(of, e), .bias = {}});
      Product& p = own.product;
      p.x = (down ? wave.gate : wave.in) + row * p.k;
      p.y = (down ? wave.in : i == 0 ? wave.gate : wave.up) + row * p.outputs;
      stage.weight_bytes += p.outputs * p.row_bytes;
      // Gate and up read the same rows; all experts of a single token the same row.
      const Job& same = wave.jobs[i == 1 ? n - 1 : 0];
      const bool shared = i == 1 || (!down && wave.tokens() == 1 && n > 0);
      ++n;
      if (!own.packs) continue;
      if (shared && same.product.packed && same_packing(same.product, p)) {
        p.packed = same.product.packed;
        own.packs = false;
      } else {
        p.packed = packed;
        packed += packed_bytes(p);
      }
    }
  }
  stage.jobs = {wave.jobs, n};
  return stage;
}

// Wave after wave, so that a token's experts are added in the order of their ids.
int CpuOps::do_experts(const Tensor& y, const Tensor& x, const ops::Experts& w, const ops::Routes& routes,
                       std::byte* scratch) {
  const Wave wave(*this, x, w, routes.ids.cols(), scratch);
  const int64_t count = w.gate.shape.planes, dim = x.cols();
  sort_choices(wave, routes);
  std::fill_n(y.f32(), y.shape.size(), 0.0f);
  int used = 0;
  for (int64_t first = 0, last = 0; first < count; first = last) {
    while (last < count && wave.begin[last + 1] - wave.begin[first] <= wave.room) ++last;
    const int32_t* token = wave.token + wave.begin[first];
    const float* weight = wave.weight + wave.begin[first];
    const int64_t rows = wave.begin[last] - wave.begin[first];
    each(rows, dim, [&](int64_t i) { std::copy_n(x.f32() + token[i] * dim, dim, wave.in + i * dim); });

    run_stage(stage_of(wave, first, last, false),
              [&](const Product& gate, const Product& up, int64_t begin, int64_t end) {
                for (int64_t t = 0; t < gate.tokens; ++t) {
                  float* g = gate.y + t * gate.outputs + begin;
                  kernels_.gated[static_cast<int>(w.act)](g, g, up.y + t * up.outputs + begin, end - begin);
                }
              });
    const Stage down = stage_of(wave, first, last, true);
    used += static_cast<int>(down.jobs.size());
    run_stage(down, [](const Product&, const Product&, int64_t, int64_t) {});
    columns(rows * dim, dim, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < rows; ++i)
        kernels_.add_scaled(y.f32() + token[i] * dim + begin, wave.in + i * dim + begin, weight[i],
                            end - begin);
    });
  }
  return used;
}

}  // namespace juno::cpu
