// SPDX-License-Identifier: Apache-2.0
#include "ops/executor.h"

#include <algorithm>
#include <array>

#include "ops/weight.h"

namespace juno::ops {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(Verb::kCount)> kVerbs = {
    "embed", "linear",  "norm", "rope",  "attention", "gated",    "add",
    "scale", "softcap", "rows", "route", "experts",   "end_layer"};

size_t bytes_of(const Tensor& x) { return static_cast<size_t>(x.shape.size()) * sizeof(float); }

bool same_table(const Rope& a, const Rope& b) {
  return &a == &b || (a.magnitude == b.magnitude && a.freq == b.freq);
}

}  // namespace

Executor::Executor(std::unique_ptr<Device> device, Activations activations)
    : device_(std::move(device)), activations_(activations), recorder_(kVerbs) {
  arena_.adopt(nullptr, 0);
}

Executor::~Executor() { release(); }

Snapshot Executor::snapshot() const {
  Snapshot s = recorder_.snapshot();
  s.traffic = device_->traffic();
  return s;
}

void Executor::release() {
  if (memory_) device_->release(memory_);
  memory_ = nullptr;
  arena_.adopt(nullptr, 0);
}

Result<void> Executor::plan(const Batch& largest, const std::function<void(const Batch&)>& forward) {
  release();
  auto done = guard([&] {
    const size_t bytes = take(measure(largest, forward));
    memory_ = take(device_->allocate(bytes));
    arena_.adopt(memory_, bytes);
  });
  if (!done) release();
  return done;
}

Result<size_t> Executor::measure(const Batch& largest, const std::function<void(const Batch&)>& forward) {
  const Arena planned = arena_;
  auto bytes = guard([&] {
    arena_.measure();
    forward(largest);
    return arena_.peak();
  });
  rope_tables_.clear();
  arena_ = planned;
  return bytes;
}

Tensor Executor::enter(int64_t rows, int64_t cols) {
  arena_.rewind(0);
  return make(rows, cols);
}

Tensor Executor::make(int64_t rows, int64_t cols, DType dtype) {
  Tensor y{.dtype = dtype, .shape = {.rows = rows, .cols = cols}};
  y.data = arena_.take(bytes_of(y));
  return y;
}

// Runs a kernel with its scratch memory, timed; while planning, only reserves.
template <class Kernel>
void Executor::launch(Verb verb, size_t scratch, Kernel&& kernel) {
  const size_t mark = arena_.mark();
  auto* memory = static_cast<std::byte*>(arena_.take(scratch));
  if (!arena_.measuring()) {
    const Recorder::Timer timer(recorder_, static_cast<int>(verb));
    try {
      kernel(memory);
    } catch (...) {
      recorder_.failed(static_cast<int>(verb));
      throw;
    }
  }
  arena_.rewind(mark);
}

void Executor::count(Verb verb, uint64_t weight_bytes, std::initializer_list<Tensor> moved) {
  if (arena_.measuring()) return;
  uint64_t bytes = 0;
  for (const Tensor& x : moved) bytes += bytes_of(x);
  recorder_.count(static_cast<int>(verb), weight_bytes, bytes);
}

void Executor::begin(const Batch& batch) {
  batch_ = batch;
  arena_.reset();
  rope_tables_.clear();
  bad_layer_.reset();
}

Tensor Executor::end_layer(int layer, const Tensor& x) {
  arena_.rewind(0);
  const Tensor y = make(x.rows(), x.cols());
  launch(Verb::kEndLayer, 0, [&](std::byte*) {
    assert(y.data == x.data || std::less_equal<>()(y.f32() + y.shape.size(), x.f32()) ||
           std::less_equal<>()(x.f32() + x.shape.size(), y.f32()));
    if (y.data != x.data) do_copy(y, x);
    if (checking_ && !bad_layer_ && !do_finite(y)) bad_layer_ = layer;
  });
  count(Verb::kEndLayer, 0, {x, y});
  return y;
}

Tensor Executor::embed(const Tensor& table, const Tensor& tokens) {
  assert(tokens.dtype == DType::kI32 && tokens.rows() == 1);
  const Tensor y = make(tokens.cols(), table.cols());
  launch(Verb::kEmbed, 0, [&](std::byte*) { do_embed(y, table, tokens); });
  count(Verb::kEmbed, row_bytes(table) * tokens.cols(), {y});
  return y;
}

Tensor Executor::linear(const Tensor& x, const Linear& w) {
  assert(w.weight.cols() == x.cols() && w.weight.shape.planes == 1);
  assert(!w.bias || w.bias.shape.size() == w.weight.rows());
  const Tensor y = make(x.rows(), w.weight.rows());
  launch(Verb::kLinear, linear_scratch(x, w), [&](std::byte* scratch) { do_linear(y, x, w, scratch); });
  count(Verb::kLinear, weight_bytes(w.weight), {x, y});
  return y;
}

// Counted as the verbs that it stands for; its time is that of the products.
void Executor::launch_products(const Products& p) {
  assert(p.w.size() <= kMostProducts);
  launch(Verb::kLinear, products_scratch(p), [&](std::byte* scratch) { do_products(p, scratch); });
  for (const Linear* w : p.w) {
    assert(w->weight.cols() == p.x.cols() && w->weight.shape.planes == 1);
    assert(!w->bias || w->bias.shape.size() == w->weight.rows());
    count(Verb::kLinear, weight_bytes(w->weight), {p.x});
  }
  for (const Tensor& y : p.y) {
    if (p.gated) count(Verb::kGated, 0, {y});
    else if (p.plus) count(Verb::kAdd, 0, {*p.plus, y});
    else if (!arena_.measuring()) recorder_.moved(static_cast<int>(Verb::kLinear), bytes_of(y));
  }
}

void Executor::linear_each(const Tensor& x, std::span<const Linear* const> w, std::span<Tensor> y) {
  if (!fuses()) return Ops::linear_each(x, w, y);
  for (size_t i = 0; i < w.size(); ++i) y[i] = make(x.rows(), w[i]->weight.rows());
  launch_products({.x = x, .w = w, .y = y});
}

Tensor Executor::gated_linear(Act act, const Tensor& x, const Linear& gate, const Linear& up) {
  if (!fuses()) return Ops::gated_linear(act, x, gate, up);
  assert(gate.weight.rows() == up.weight.rows());
  const Linear* const w[] = {&gate, &up};
  const Tensor y = make(x.rows(), gate.weight.rows());
  launch_products({.x = x, .w = w, .y = {&y, 1}, .gated = &act});
  return y;
}

Tensor Executor::add_linear(const Tensor& a, const Tensor& x, const Linear& w) {
  if (!fuses()) return Ops::add_linear(a, x, w);
  assert(a.rows() == x.rows() && a.cols() == w.weight.rows());
  const Linear* const one = &w;
  const Tensor y = make(a.rows(), a.cols());
  launch_products({.x = x, .w = {&one, 1}, .y = {&y, 1}, .plus = &a});
  return y;
}

Tensor Executor::norm(const Tensor& x, const Norm& w) {
  assert(w.weight.cols() > 0 && x.cols() % w.weight.cols() == 0);
  assert(!w.bias || w.bias.cols() == w.weight.cols());
  const Tensor y = make(x.rows(), x.cols());
  launch(Verb::kNorm, 0, [&](std::byte*) { do_norm(y, x, w); });
  count(Verb::kNorm, 0, {x, y});
  return y;
}

// Computed when a pass first meets a Rope, kept until it ends.
Tensor Executor::rope_table(const Rope& rope) {
  for (const RopeTable& known : rope_tables_)
    if (same_table(*known.rope, rope)) return known.table;
  Tensor table{
      .shape = {.rows = batch_.positions.cols(), .cols = 2 * static_cast<int64_t>(rope.freq.size())}};
  table.data = arena_.keep(bytes_of(table));
  launch(Verb::kRope, 0, [&](std::byte*) { do_rope_table(table, rope, batch_.positions); });
  rope_tables_.push_back({&rope, table});
  return table;
}

Tensor Executor::rope(const Tensor& x, const Rope& rope) {
  assert(rope.head_dim > 0 && x.cols() % rope.head_dim == 0);
  assert(2 * rope.freq.size() <= static_cast<size_t>(rope.head_dim) && x.rows() == batch_.positions.cols());
  const Tensor table = rope_table(rope);
  const Tensor y = make(x.rows(), x.cols());
  launch(Verb::kRope, 0, [&](std::byte*) { do_rope(y, x, rope, table); });
  count(Verb::kRope, 0, {x, y, table});
  return y;
}

Tensor Executor::attention(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how,
                           const KvView& kv) {
  const int64_t heads = q.cols() / how.key_dim;
  [[maybe_unused]] const int64_t kv_heads = k.cols() / how.key_dim;
  assert(heads * how.key_dim == q.cols() && kv_heads * how.key_dim == k.cols() && heads % kv_heads == 0);
  assert(v.cols() == kv_heads * how.value_dim && k.rows() == q.rows() && v.rows() == q.rows());
  const Attend a{make(q.rows(), heads * how.value_dim), q, k, v, how, kv};
  launch(Verb::kAttention, attention_scratch(a), [&](std::byte* scratch) { do_attention(a, scratch); });
  uint64_t cached = 0;  // bytes of the cache that the new positions see
  for (const Run& run : kv.runs) cached += uint64_t(run.position + run.rows) * (k.cols() + v.cols()) * 2;
  count(Verb::kAttention, 0, {q, k, v, a.y});
  if (!arena_.measuring()) recorder_.moved(static_cast<int>(Verb::kAttention), cached);
  return a.y;
}

Tensor Executor::gated(Act act, const Tensor& gate, const Tensor& up) {
  assert(gate.shape == up.shape);
  const Tensor y = make(gate.rows(), gate.cols());
  launch(Verb::kGated, 0, [&](std::byte*) { do_gated(y, act, gate, up); });
  count(Verb::kGated, 0, {gate, up, y});
  return y;
}

Tensor Executor::add(const Tensor& a, const Tensor& b) {
  assert(a.shape == b.shape);
  const Tensor y = make(a.rows(), a.cols());
  launch(Verb::kAdd, 0, [&](std::byte*) { do_add(y, a, b); });
  count(Verb::kAdd, 0, {a, b, y});
  return y;
}

Tensor Executor::scale(const Tensor& x, float factor) {
  const Tensor y = make(x.rows(), x.cols());
  launch(Verb::kScale, 0, [&](std::byte*) { do_scale(y, x, factor); });
  count(Verb::kScale, 0, {x, y});
  return y;
}

Tensor Executor::softcap(const Tensor& x, float cap) {
  const Tensor y = make(x.rows(), x.cols());
  launch(Verb::kSoftcap, 0, [&](std::byte*) { do_softcap(y, x, cap); });
  count(Verb::kSoftcap, 0, {x, y});
  return y;
}

Tensor Executor::rows(const Tensor& x, const Tensor& index) {
  assert(index.dtype == DType::kI32 && index.rows() == 1);
  if (batch_.all_wanted && index.data == batch_.outputs.data) return x;
  const Tensor y = make(index.cols(), x.cols());
  launch(Verb::kRows, 0, [&](std::byte*) { do_rows(y, x, index); });
  count(Verb::kRows, 0, {y, y});
  return y;
}

Routes Executor::route(const Tensor& logits, const Router& how) {
  assert(how.top_k > 0 && how.top_k <= logits.cols());
  const Routes y{make(logits.rows(), how.top_k, DType::kI32), make(logits.rows(), how.top_k)};
  launch(Verb::kRoute, 0, [&](std::byte*) { do_route(y, logits, how); });
  count(Verb::kRoute, 0, {logits, y.ids, y.weights});
  return y;
}

Tensor Executor::experts(const Tensor& x, const Experts& w, const Routes& routes) {
  assert(w.gate.shape == w.up.shape && w.gate.cols() == x.cols());
  assert(w.down.rows() == x.cols() && w.down.cols() == w.gate.rows() &&
         w.down.shape.planes == w.gate.shape.planes);
  assert(routes.ids.rows() == x.rows() && routes.weights.shape == routes.ids.shape);
  const Tensor y = make(x.rows(), x.cols());
  int used = 0;
  launch(Verb::kExperts, experts_scratch(x, w, static_cast<int>(routes.ids.cols())),
         [&](std::byte* scratch) { used = do_experts(y, x, w, routes, scratch); });
  count(Verb::kExperts, used * (plane_bytes(w.gate) + plane_bytes(w.up) + plane_bytes(w.down)), {x, y});
  return y;
}

}  // namespace juno::ops
