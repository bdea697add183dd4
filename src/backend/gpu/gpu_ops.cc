// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/gpu_ops.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "backend/gpu/fuse.h"
#include "backend/gpu/kernel_times.h"
#include "backend/gpu/plan.h"
#include "backend/gpu/plan_prompt.h"

namespace juno::gpu {
namespace {

constexpr size_t kMaxPrograms = 32;
constexpr int64_t kLeast = 1 << 14;  // numbers that there is room for from the start
constexpr int kPromptRows = 8;       // a run of so many rows is a prompt

int chunks_of(const ops::Batch& batch) {
  int most = 1;
  for (const ops::Run& run : batch.runs)
    most = std::max(most, (run.position + run.rows + ops::kPagePositions - 1) / ops::kPagePositions);
  return most;
}

// Positions whose keys and values a pass reads.
uint64_t seen_positions(const ops::Batch& batch) {
  uint64_t seen = 0;
  for (const ops::Run& run : batch.runs) seen += static_cast<uint64_t>(run.position + run.rows);
  return seen;
}

}  // namespace

GpuOps::GpuOps(std::string_view name, std::unique_ptr<Runtime> runtime, ops::Activations activations)
    : Executor(std::make_unique<GpuDevice>(std::move(runtime)), activations),
      name_(name),
      runtime_(static_cast<GpuDevice&>(device()).runtime()) {
  how_.chip = runtime_.chip();
  how_.planes = activations == ops::Activations::kInt8x2 ? 2 : 1;
}

GpuOps::~GpuOps() {
  programs_.clear();
  for (const Frequencies& f : frequencies_) runtime_.release(f.data);
  runtime_.release(numbers_memory_);
  runtime_.release(top_);
  runtime_.release(top_parts_);
  runtime_.release(workspace_);
  runtime_.release(counters_);
}

// What a program was made for grows in steps, so that a sequence meets few of them.
GpuOps::Shape GpuOps::shape_of(const ops::Batch& batch) const {
  int chunks = 1;
  while (chunks < chunks_of(batch)) chunks *= 2;
  return {.memory = arena_memory(),
          .memory_bytes = planned_bytes(),
          .tokens = batch.tokens.data,
          .positions = batch.positions.data,
          .outputs = batch.outputs.data,
          .rows = batch.tokens.cols(),
          .wanted = batch.outputs.cols(),
          .max_chunks = chunks,
          .runs = std::ranges::any_of(batch.runs, [](const ops::Run& r) { return r.rows >= kPromptRows; }),
          .alone = std::ranges::any_of(batch.runs, [](const ops::Run& r) { return r.rows == 1; }),
          .apart = std::ranges::all_of(batch.runs, [](const ops::Run& r) { return r.rows == 1; }),
          .all_wanted = batch.all_wanted,
          .hidden = batch.hidden,
          .vocab = batch.top.empty() ? 0 : batch.vocab};
}

Tensor GpuOps::run(const ops::Batch& batch, const std::function<Tensor()>& forward) {
  if (planning() || checking()) return forward();
  Program& p = program(batch, forward);
  try {
    play(p);
  } catch (...) {
    there_.clear();  // a kernel that did not end may have left something there
    throw;
  }
  p.used = ++passes_;
  return p.result;
}

// No program survives that knows another cache: an engine that is made anew may have all but this where the
// one before it had it.
void GpuOps::follow_cache(std::span<const ops::KvLayer> layers) {
  const auto same = [](const ops::KvLayer& a, const ops::KvLayer& b) {
    return a.keys.data == b.keys.data && a.values.data == b.values.data;
  };
  if (std::ranges::equal(layers, cache_, same)) return;
  programs_.clear();
  cache_.assign(layers.begin(), layers.end());
}

// The program of this batch, its numbers handed over.
GpuOps::Program& GpuOps::program(const ops::Batch& batch, const std::function<Tensor()>& forward) {
  const Shape shape = shape_of(batch);
  hand_over(batch);
  follow_cache(batch.layers);
  seen_ = seen_positions(batch);
  for (const auto& known : programs_) {
    if (known->shape != shape) continue;
    recount(*known, batch);
    return *known;
  }
  auto p = std::make_unique<Program>();
  p->shape = shape;
  record(*p, batch, forward);
  if (programs_.size() == kMaxPrograms)
    programs_.erase(std::ranges::min_element(programs_, {}, [](const auto& known) { return known->used; }));
  programs_.push_back(std::move(p));
  return *programs_.back();
}

void GpuOps::record(Program& p, const ops::Batch& batch, const std::function<Tensor()>& forward) {
  const Snapshot before = recorder().snapshot();
  steps_.clear();
  recording_ = true;
  try {
    p.result = forward();
  } catch (...) {
    recording_ = false;
    steps_.clear();
    throw;
  }
  recording_ = false;
  p.counts = recorder().snapshot().since(before);
  for (const Step& step : steps_) {
    if (const auto* a = std::get_if<AttentionStep>(&step))
      p.cache_bytes += static_cast<uint64_t>(a->k.cols() + a->v.cols()) * sizeof(uint16_t);
  }
  p.counts.ops[static_cast<size_t>(ops::Verb::kAttention)].moved_bytes -=
      seen_positions(batch) * p.cache_bytes;
  p.launches =
      lower_steps(fuse(std::move(steps_), {p.result}, batch.tokens.cols() * how_.planes > kVectorRows))
          .launches;
  if (p.shape.vocab > 0) append_top(p);
}

void GpuOps::play(Program& p) {
  if (!p.graph && p.used > 0) p.graph = runtime_.capture(p.launches);
  if (p.graph) return runtime_.replay(*p.graph);
  for (const Launch& launch : p.launches) runtime_.launch(launch);
}

// What one more pass of a known program adds to the recorder.
void GpuOps::recount(const Program& p, const ops::Batch& batch) {
  recorder().repeat(p.counts);
  recorder().moved(static_cast<int>(ops::Verb::kAttention), seen_positions(batch) * p.cache_bytes);
}

void GpuOps::begin(const ops::Batch& batch) {
  Executor::begin(batch);
  if (!planning() && !recording_) hand_over(batch);
}

// [wanted + 1][a zero for each wanted row][index of each row's first page][pages of all runs]
void GpuOps::hand_over(const ops::Batch& batch) {
  const int64_t wanted = batch.outputs.cols(), rows = batch.positions.cols(), first = 2 * wanted + 1;
  numbers_.assign(static_cast<size_t>(first + rows), 0);
  std::partial_sum(batch.top.begin(), batch.top.end(), numbers_.begin() + 1);
  for (const ops::Run& run : batch.runs) {
    const auto begin = static_cast<int32_t>(static_cast<int64_t>(numbers_.size()) - first - rows);
    std::fill_n(numbers_.begin() + first + run.first_row, run.rows, begin);
    numbers_.insert(numbers_.end(), run.pages.begin(), run.pages.end());
  }
  const size_t bytes = numbers_.size() * sizeof(int32_t);
  if (bytes > numbers_bytes_)
    grow(numbers_memory_, numbers_bytes_, std::max<size_t>(2 * bytes, kLeast * sizeof(int32_t)));
  auto* const at = static_cast<int32_t*>(numbers_memory_);
  if (numbers_ != there_) {
    there_.clear();
    runtime_.write(at, numbers_.data(), bytes);
    there_ = numbers_;
  }
  how_.memory.positions = batch.positions.i32();
  how_.memory.first_page = at + first;
  how_.memory.pages = at + first + rows;
  const Shape shape = shape_of(batch);
  how_.memory.max_chunks = shape.max_chunks;
  how_.memory.runs = shape.runs;
  how_.memory.alone = shape.alone;
  how_.memory.apart = shape.apart;
}

// No program survives that knows the old place.
void GpuOps::grow(void*& memory, size_t& bytes, size_t wanted, bool on_host) {
  programs_.clear();
  there_.clear();
  runtime_.release(std::exchange(memory, nullptr));
  bytes = 0;
  memory = take(on_host ? runtime_.allocate_on_host(wanted) : runtime_.allocate(wanted));
  bytes = wanted;
}

Lowered GpuOps::lower_steps(const Steps& steps) {
  if (!counters_) {
    const std::vector<uint32_t> zeros(kCounters);
    counters_ = take(runtime_.allocate(zeros.size() * sizeof(uint32_t)));
    how_.memory.counters = static_cast<uint32_t*>(counters_);
    runtime_.write(counters_, zeros.data(), zeros.size() * sizeof(uint32_t));
  }
  how_.memory.workspace = static_cast<std::byte*>(workspace_);
  Lowered lowered = lower(steps, how_);
  if (lowered.workspace <= workspace_bytes_) return lowered;
  grow(workspace_, workspace_bytes_, lowered.workspace);
  how_.memory.workspace = static_cast<std::byte*>(workspace_);
  return lower(steps, how_);
}

// Outside of run() a step runs at once, as it is.
void GpuOps::step(Step step) {
  steps_.push_back(std::move(step));
  if (recording_) return;
  const Steps one = std::move(steps_);
  steps_.clear();
  for (const Launch& launch : lower_steps(one).launches) runtime_.launch(launch);
}

void GpuOps::append_top(Program& p) {
  const Tensor& logits = p.result;
  const auto rows = static_cast<size_t>(logits.rows());
  const size_t most = rows * kMostTop * sizeof(Pair32);
  const size_t parts = most * top_pieces(logits.cols());
  if (parts > top_parts_bytes_) grow(top_parts_, top_parts_bytes_, parts);
  if (most > top_bytes_) grow(top_, top_bytes_, most, /*on_host=*/true);
  auto* const first = static_cast<int32_t*>(numbers_memory_);
  p.launches.push_back(gpu::plan(TopArgs{.logits = logits.f32(),
                                         .first = first,
                                         .arrived = reinterpret_cast<uint32_t*>(first + rows + 1),
                                         .parts = static_cast<uint64_t*>(top_parts_),
                                         .top = static_cast<Pair32*>(top_),
                                         .rows = static_cast<int32_t>(rows),
                                         .columns = static_cast<int32_t>(logits.cols()),
                                         .n = static_cast<int32_t>(p.shape.vocab)}));
}

void GpuOps::top_logits(std::span<ops::TopLogit> to) {
  static_assert(sizeof(ops::TopLogit) == sizeof(Pair32));
  runtime_.read(to.data(), top_, to.size_bytes());
}

// The program that ran last.
GpuOps::Program* GpuOps::last() {
  const auto found = std::ranges::find(programs_, passes_, [](const auto& p) { return p->used; });
  return found == programs_.end() ? nullptr : found->get();
}

// All are asked for before the first has ended, so the device does not wait for the host.
double GpuOps::device_seconds(int times) {
  Program* const p = last();
  if (!p) return 0;
  play(*p);  // now it is a graph
  runtime_.wait();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) play(*p);
  runtime_.wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
}

std::vector<ops::KernelTime> GpuOps::kernel_times(int times) {
  const Program* const p = last();
  if (!p) return {};
  std::vector<std::vector<double>> samples(p->launches.size());
  for (int i = 0; i < times; ++i) {
    const std::vector<double> once = runtime_.time_each(p->launches);
    for (size_t k = 0; k < once.size(); ++k) samples[k].push_back(once[k]);
  }
  std::vector<double> seconds;
  for (auto& s : samples) seconds.push_back(median(s));
  return by_kernel(p->launches, seconds, seen_);
}

const double* GpuOps::frequencies(const std::vector<double>& values) {
  for (const Frequencies& known : frequencies_)
    if (known.values == values) return known.data;
  const size_t bytes = values.size() * sizeof(double);
  frequencies_.reserve(frequencies_.size() + 1);
  auto* const data = static_cast<double*>(take(runtime_.allocate(bytes)));
  frequencies_.push_back({values, data});
  if (bytes > 0) runtime_.write(data, values.data(), bytes);
  return data;
}

size_t GpuOps::experts_scratch(const Tensor& x, const ops::Experts& w, int top_k) const {
  return experts_scratch_bytes(w, x.rows(), top_k);
}

void GpuOps::do_embed(const Tensor& y, const Tensor& table, const Tensor& tokens) {
  step(EmbedStep{y, table, tokens});
}

void GpuOps::do_linear(const Tensor& y, const Tensor& x, const ops::Linear& w, std::byte* /*scratch*/) {
  LinearStep linear{.x = x};
  linear.parts.push_back({y, w});
  step(std::move(linear));
}

void GpuOps::do_norm(const Tensor& y, const Tensor& x, const ops::Norm& w) { step(NormStep{y, x, w}); }

void GpuOps::do_rope_table(const Tensor& table, const ops::Rope& rope, const Tensor& positions) {
  if (rope.freq.empty()) return;
  step(RopeTableStep{table, positions, frequencies(rope.freq), rope.magnitude});
}

void GpuOps::do_rope(const Tensor& y, const Tensor& x, const ops::Rope& rope, const Tensor& table) {
  step(RopeStep{y,
                x,
                table,
                {.head_dim = rope.head_dim,
                 .pairs = static_cast<int32_t>(rope.freq.size()),
                 .interleaved = rope.interleaved}});
}

void GpuOps::do_attention(const Attend& a, std::byte* /*scratch*/) {
  step(
      AttentionStep{.y = a.y, .q = a.q, .k = a.k, .v = a.v, .how = a.how, .layer = a.kv.layer, .q_out = a.q});
}

void GpuOps::do_gated(const Tensor& y, ops::Act act, const Tensor& gate, const Tensor& up) {
  step(ElementStep{.what = Elementwise::kGated, .y = y, .a = gate, .b = up, .act = act});
}

void GpuOps::do_add(const Tensor& y, const Tensor& a, const Tensor& b) {
  step(ElementStep{.what = Elementwise::kAdd, .y = y, .a = a, .b = b});
}

void GpuOps::do_scale(const Tensor& y, const Tensor& x, float factor) {
  step(ElementStep{.what = Elementwise::kScale, .y = y, .a = x, .factor = factor});
}

void GpuOps::do_softcap(const Tensor& y, const Tensor& x, float cap) {
  step(ElementStep{.what = Elementwise::kSoftcap, .y = y, .a = x, .factor = cap});
}

void GpuOps::do_rows(const Tensor& y, const Tensor& x, const Tensor& index) { step(RowsStep{y, x, index}); }

void GpuOps::do_route(const ops::Routes& y, const Tensor& logits, const ops::Router& how) {
  step(RouteStep{y, logits, how});
}

// Which experts were chosen is known on the device alone: counted are as many as can have been.
int GpuOps::do_experts(const Tensor& y, const Tensor& x, const ops::Experts& w, const ops::Routes& routes,
                       std::byte* scratch) {
  step(ExpertsStep{y, x, w, routes, scratch});
  return static_cast<int>(std::min(w.gate.shape.planes, routes.ids.shape.size()));
}

void GpuOps::do_copy(const Tensor& y, const Tensor& x) {
  step(ElementStep{.what = Elementwise::kCopy, .y = y, .a = x});
}

// Only while layers are being checked, when steps run at once.
bool GpuOps::do_finite(const Tensor& x) {
  uint32_t flag = 0;
  there_.clear();
  runtime_.write(numbers_memory_, &flag, sizeof flag);
  runtime_.launch(gpu::plan(
      FiniteArgs{.x = x.f32(), .flag = static_cast<uint32_t*>(numbers_memory_), .n = x.shape.size()}));
  runtime_.read(&flag, numbers_memory_, sizeof flag);
  return flag == 0;
}

}  // namespace juno::gpu
