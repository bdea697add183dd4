// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/lower.h"

#include <algorithm>

#include "backend/gpu/kernels/prompt_shapes.h"
#include "backend/gpu/plan.h"
#include "backend/gpu/plan_prompt.h"
#include "backend/gpu/repack.h"
#include "ops/rope_table.h"
#include "ops/weight.h"

namespace juno::gpu {
namespace {

constexpr size_t kAlign = 256;
// One row is rounded by each block of a product for itself, if it can be done while it is read (a launch of
// its own costs more up to the 14336 of an 8B model, measured on an H200) or is short.
constexpr int kRoundedInside = 2048;

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// The parts from `first` on that share its format, to `to`. -> how many
int32_t take_alike(const MatvecArgs& from, int first, MatvecPart (&to)[3]) {
  int32_t count = 0;
  while (first + count < from.part_count &&
         from.parts[first + count].weight.format == from.parts[first].weight.format) {
    to[count] = from.parts[first + count];
    ++count;
  }
  return count;
}

int32_t narrow(int64_t n) { return static_cast<int32_t>(n); }

NormWeights norm_weights(const ops::Norm& n) {
  if (!n.weight) return {};
  return {
      .weight = n.weight.f32(), .bias = n.bias ? n.bias.f32() : nullptr, .eps = n.eps, .centred = n.centred};
}

// Pairs of a token and its expert are worth sorting where an expert has four of them in the mean.
bool worth_grouping(int64_t pairs, int64_t experts) { return pairs >= 4 * experts; }
// With those that fill the last group of each expert up.
int64_t grouped_pairs(int64_t pairs, int64_t experts, int64_t size) {
  return (pairs + (size - 1) * experts) / size * size;
}
int64_t most_slots(int64_t pairs, int64_t experts) {
  return worth_grouping(pairs, experts) ? pairs + (kMatvecRows - 1) * experts : pairs;
}

class Lowerer {
 public:
  explicit Lowerer(const Lowering& how) : how_(how) {}

  void operator()(const EmbedStep& s);
  void operator()(const LinearStep& s);
  void operator()(const NormStep& s);
  void operator()(const RopeTableStep& s);
  void operator()(const RopeStep& s);
  void operator()(const AttentionStep& s);
  void operator()(const ElementStep& s);
  void operator()(const RowsStep& s);
  void operator()(const RouteStep& s);
  void operator()(const ExpertsStep& s);

  void next() { used_ = 0; }  // a step's workspace is free for the next one
  Lowered finish() { return std::move(out_); }

 private:
  // A chunk of a prompt may want no logits: what follows its last layer has no rows then, and nothing to do.
  void add(const Launch& launch) {
    if (launch.shared > how_.chip.shared_per_block)
      fail(Code::kDevice, "[backend/gpu] {} takes {} bytes of shared memory a block; this GPU has {}",
           kernel_names()[static_cast<size_t>(launch.kernel)], launch.shared, how_.chip.shared_per_block);
    if (launch.grid.count() > 0) out_.launches.push_back(launch);
  }
  template <class T>
  T* take(size_t count);
  Rounded rounded(int64_t rows, int64_t k, int block);
  // The input of products as they take it: as it is, or rounded by a launch before them.
  void input(MatvecArgs& a, const QuantiseArgs& x, bool is_float);
  void products(MatvecArgs a);
  void add_products(const MatvecArgs& a);
  // The same for more rows than those launches serve at once; false where there is no kernel for that.
  bool many_products(const MatvecArgs& a, const QuantiseArgs& x);
  void float_products(const MatvecArgs& a, const float* x);
  bool prompt_attention(const AttendArgs& a);
  struct Groups;
  Groups group(const ExpertsStep& s, float* row, std::byte* numbers);
  void expert_products(MatvecArgs a, const float* x, const Groups& g, const Tensor& weight);

  const Lowering& how_;
  Lowered out_;
  size_t used_ = 0;
};

template <class T>
T* Lowerer::take(size_t count) {
  // Without memory the launches are counted only, but what is taken is taken: no address is null.
  const auto begin = how_.memory.workspace ? reinterpret_cast<uintptr_t>(how_.memory.workspace) : kAlign;
  const uintptr_t at = begin + used_;
  used_ += aligned(count * sizeof(T));
  out_.workspace = std::max(out_.workspace, used_);
  return reinterpret_cast<T*>(at);
}

Rounded Lowerer::rounded(int64_t rows, int64_t k, int block) {
  const auto n = static_cast<size_t>(rows * k);
  return {
      .q = take<int8_t>(n), .d = take<float>(n / static_cast<size_t>(block)), .h = take<uint32_t>(n / 32)};
}

void Lowerer::operator()(const EmbedStep& s) {
  add(plan(EmbedArgs{.table = device_weight(s.table),
                     .tokens = s.tokens.i32(),
                     .y = s.y.f32(),
                     .count = narrow(s.y.rows())}));
}

void Lowerer::input(MatvecArgs& a, const QuantiseArgs& x, bool is_float) {
  MatvecArgs inside = a;
  inside.from = x.x;
  inside.up = x.up;
  inside.norm = x.norm;
  inside.source = x.source;
  inside.from_act = x.act;
  const bool one = x.tokens * x.planes == 1;
  if (is_float || (one && (x.k <= kRoundedInside || inside.rounds_while_reading()))) {
    a = inside;
    return;
  }
  QuantiseArgs round = x;
  round.y = rounded(int64_t{x.tokens} * x.planes, x.k, x.block);
  add(plan(round, how_.chip));
  a.x = round.y;
}

void Lowerer::add_products(const MatvecArgs& a) {
  const std::vector<Launch> launches = plan(a, how_.chip);
  if (launches.empty())
    fail(Code::kBadData, "[backend/gpu] there is no kernel for weights in {}",
         quant::find_format(a.parts[0].weight.format)->name);
  for (const Launch& one : launches) add(one);
}

// Few tokens at a time.
void Lowerer::products(MatvecArgs a) {
  const int32_t tokens = a.tokens, step = std::max(matvec_rows(a.k, a.block, how_.chip) / a.planes, 1);
  for (int32_t t = 0; t < tokens; t += step) {
    MatvecArgs part = a;
    part.tokens = std::min(step, tokens - t);
    for (int i = 0; i < a.part_count; ++i) part.parts[i].y += t * a.parts[i].y_stride;
    if (a.residual) part.residual += t * a.parts[0].y_stride;
    if (a.from) part.from += int64_t{t} * a.k;
    if (a.up) part.up += int64_t{t} * a.k;
    if (a.x.q) {
      const int64_t n = int64_t{t} * a.planes * a.k;
      part.x = {.q = a.x.q + n, .d = a.x.d + n / a.block, .h = a.x.h + n / 32};
    }
    add_products(part);
  }
}

bool Lowerer::many_products(const MatvecArgs& a, const QuantiseArgs& x) {
  if (!can_multiply_many(how_.chip) || a.k == a.block) return false;  // one block: plan_prompt.cc, choose()
  const int32_t rows = x.tokens * x.planes;
  const PanelCounts counts = panel_counts(rows, a.k, a.block);
  RoundArgs round{.from = x,
                  .y = {.h = take<uint16_t>(counts.h), .d = take<float>(counts.d), .rows = counts.rows}};
  for (int i = 0; i < a.part_count; ++i) {
    const int unit = many_unit(a.parts[i].weight.format, a.k);
    if (unit == 0) return false;
    if (!round.q[unit / 64]) round.q[unit / 64] = take<uint16_t>(counts.q);
  }
  add(plan(round));
  for (int i = 0; i < a.part_count;) {
    ManyArgs many{.part_count = 0,
                  .x = round.y,
                  .rows = rows,
                  .planes = x.planes,
                  .k = a.k,
                  .block = a.block,
                  .residual = a.epilogue == Epilogue::kAdd ? a.residual : nullptr,
                  .arrived = how_.memory.counters};
    many.x.q = round.q[many_unit(a.parts[i].weight.format, a.k) / 64];
    i += many.part_count = take_alike(a, i, many.parts);
    many.partial = take<float>(partial_count(many, how_.chip));
    many.parked = take<float>(parked_count(many, how_.chip));
    add(plan(many, how_.chip));
  }
  return true;
}

void Lowerer::float_products(const MatvecArgs& a, const float* x) {
  for (int i = 0; i < a.part_count;) {
    FloatArgs some{.part_count = 0,
                   .x = x,
                   .tokens = a.tokens,
                   .k = a.k,
                   .residual = a.epilogue == Epilogue::kAdd ? a.residual : nullptr};
    i += some.part_count = take_alike(a, i, some.parts);
    add(plan(some));
  }
}

void Lowerer::operator()(const LinearStep& s) {
  const quant::FormatInfo& format = ops::format_of(s.parts[0].w.weight);
  MatvecArgs a;
  a.part_count = static_cast<int32_t>(s.parts.size());
  for (size_t i = 0; i < s.parts.size(); ++i) {
    const LinearStep::Part& part = s.parts[i];
    a.parts[i] = {.weight = device_weight(part.w.weight),
                  .bias = part.w.bias ? part.w.bias.f32() : nullptr,
                  .y = part.y.f32(),
                  .y_stride = part.y.cols()};
  }
  a.epilogue = s.epilogue;
  a.residual = s.residual ? s.residual.f32() : nullptr;
  a.act = static_cast<int32_t>(s.act);
  a.tokens = narrow(s.x.rows());
  a.planes = format.is_float ? 1 : how_.planes;
  a.k = narrow(s.x.cols());
  a.block = format.is_float ? 0 : format.activation_block(s.x.cols());
  const QuantiseArgs x{.x = s.x.f32(),
                       .up = s.up ? s.up.f32() : nullptr,
                       .norm = norm_weights(s.norm),
                       .source = s.source,
                       .act = static_cast<int32_t>(s.act),
                       .tokens = a.tokens,
                       .k = a.k,
                       .block = a.block,
                       .planes = a.planes};
  if (!format.is_float && a.tokens * a.planes > kVectorRows && many_products(a, x)) {
    if (s.gated) (*this)(ElementStep{Elementwise::kGated, s.gated, s.parts[0].y, s.parts[1].y, 0, s.act});
    return;
  }
  if (format.is_float && a.tokens > kMatvecRows && !s.gated) return float_products(a, x.x);
  const bool apart = s.gated && !can_gate(a);
  if (apart) a.epilogue = Epilogue::kStore;
  if (s.gated && !apart) a.parts[0].y = s.gated.f32();
  input(a, x, format.is_float);
  products(a);
  if (apart) (*this)(ElementStep{Elementwise::kGated, s.gated, s.parts[0].y, s.parts[1].y, 0, s.act});
}

void Lowerer::operator()(const NormStep& s) {
  add(plan(NormArgs{.x = s.x.f32(),
                    .y = s.y.f32(),
                    .w = norm_weights(s.w),
                    .n = narrow(s.w.weight.cols()),
                    .runs = s.x.shape.size() / s.w.weight.cols()}));
}

void Lowerer::operator()(const RopeTableStep& s) {
  add(plan(RopeTableArgs{.freq = s.freq,
                         .magnitude = s.magnitude,
                         .positions = s.positions.i32(),
                         .table = s.table.f32(),
                         .tokens = narrow(s.table.rows()),
                         .pairs = narrow(s.table.cols() / 2)}));
}

void Lowerer::operator()(const RopeStep& s) {
  add(plan(RopeArgs{.x = s.x.f32(),
                    .y = s.y.f32(),
                    .table = s.table.f32(),
                    .shape = s.shape,
                    .tokens = narrow(s.x.rows()),
                    .heads = narrow(s.x.cols() / s.shape.head_dim)}));
}

void Lowerer::operator()(const AttentionStep& s) {
  const int64_t kv_heads = s.k.cols() / s.how.key_dim;
  const Places places{.positions = how_.memory.positions,
                      .first_page = how_.memory.first_page,
                      .pages = how_.memory.pages,
                      .keys = static_cast<uint16_t*>(s.layer.keys.data),
                      .values = static_cast<uint16_t*>(s.layer.values.data),
                      .kv_heads = narrow(kv_heads),
                      .key_dim = s.how.key_dim,
                      .value_dim = s.how.value_dim};
  const int32_t heads = narrow(s.q.cols() / s.how.key_dim);
  PrepareArgs prepare{.q = s.q.f32(),
                      .k = s.k.f32(),
                      .v = s.v.f32(),
                      .q_stride = s.q.cols(),
                      .k_stride = s.k.cols(),
                      .v_stride = s.v.cols(),
                      .q_norm = norm_weights(s.q_norm),
                      .k_norm = norm_weights(s.k_norm),
                      .rope = s.rope,
                      .places = places,
                      .rows = narrow(s.k.rows())};
  if (s.table) {
    prepare.q_out = s.q_out.f32();
    prepare.heads = heads;
    prepare.table = s.table.f32();
  }
  if (!how_.memory.apart) {
    add(plan(prepare));
    prepare = {.q = s.table ? s.q_out.f32() : s.q.f32(), .q_stride = s.q.cols(), .places = places};
  }
  const ops::ScoreScale scale = ops::score_scale(s.how);
  AttendArgs a{.prepare = prepare,
               .y = s.y.f32(),
               .places = places,
               .rows = narrow(s.k.rows()),
               .heads = heads,
               .max_chunks = how_.memory.max_chunks,
               .window = s.how.window,
               .capped = scale.capped,
               .before = scale.before,
               .after = scale.after};
  if (prompt_attention(a)) {
    if (!how_.memory.alone) return;
    a.skip_runs = 1;
  }
  const AttendPlan plan_of = attend_plan(a, how_.chip);
  if (plan_of.parts > 0) a.parts = take<float>(plan_of.parts);
  add(plan_attend(a, plan_of));
  if (plan_of.parts > 0) add(plan_attend_merge(a));
}

bool Lowerer::prompt_attention(const AttendArgs& a) {
  const PromptArgs prompt{.q = a.prepare.q,
                          .y = a.y,
                          .places = a.places,
                          .rows = a.rows,
                          .heads = a.heads,
                          .window = a.window,
                          .capped = a.capped,
                          .before = a.before,
                          .after = a.after};
  if (!how_.memory.runs || !can_attend_prompt(prompt, how_.chip)) return false;
  add(plan(prompt));
  return true;
}

void Lowerer::operator()(const ElementStep& s) {
  add(plan(ElementArgs{.what = s.what,
                       .a = s.a.f32(),
                       .b = s.b ? s.b.f32() : nullptr,
                       .y = s.y.f32(),
                       .factor = s.factor,
                       .act = static_cast<int32_t>(s.act),
                       .n = s.y.shape.size()}));
}

void Lowerer::operator()(const RowsStep& s) {
  add(plan(RowsArgs{.x = s.x.f32(),
                    .index = s.index.i32(),
                    .y = s.y.f32(),
                    .count = narrow(s.y.rows()),
                    .width = narrow(s.y.cols())}));
}

void Lowerer::operator()(const RouteStep& s) {
  add(plan(RouteArgs{.logits = s.logits.f32(),
                     .ids = s.y.ids.i32(),
                     .weights = s.y.weights.f32(),
                     .tokens = narrow(s.logits.rows()),
                     .experts = narrow(s.logits.cols()),
                     .top_k = s.how.top_k,
                     .sigmoid = s.how.sigmoid,
                     .normalise = s.how.normalise}));
}

// How products of experts are shared out: pairs of a token and its expert one by one, or up to so many of an
// expert at a time.
struct Lowerer::Groups {
  int32_t size = 1, count = 0;
  const int32_t* experts = nullptr;  // [count]
  const int32_t* slots = nullptr;    // CombineArgs::slots
  const float* x = nullptr;          // their inputs, each of which serves `shared` pairs
  int64_t shared = 1;
};

// `row` is for the inputs, a row a slot.
Lowerer::Groups Lowerer::group(const ExpertsStep& s, float* row, std::byte* numbers) {
  const int64_t top_k = s.routes.ids.cols(), pairs = s.x.rows() * top_k, experts = s.w.gate.shape.planes;
  if (!worth_grouping(pairs, experts))
    return {.count = narrow(pairs), .experts = s.routes.ids.i32(), .x = s.x.f32(), .shared = top_k};
  const auto most = [&](const Tensor& w) {
    const quant::FormatInfo& format = ops::format_of(w);
    const int block = format.is_float ? 0 : format.activation_block(w.cols());
    return std::max(matvec_rows(narrow(w.cols()), block, how_.chip) / (format.is_float ? 1 : how_.planes), 1);
  };
  GroupArgs a{.ids = s.routes.ids.i32(),
              .pairs = narrow(pairs),
              .top_k = narrow(top_k),
              .count = narrow(experts),
              .size = std::min({most(s.w.gate), most(s.w.up), most(s.w.down)})};
  a.groups = narrow(grouped_pairs(pairs, experts, a.size) / a.size);
  const auto carve = [&](int64_t count) {
    auto* const at = reinterpret_cast<int32_t*>(numbers);
    numbers += aligned(static_cast<size_t>(count) * sizeof(int32_t));
    return at;
  };
  a.tokens = carve(a.groups * a.size);
  a.slots = carve(pairs);
  a.experts = carve(a.groups);
  add(plan(a));
  add(plan(RowsArgs{
      .x = s.x.f32(), .index = a.tokens, .y = row, .count = a.groups * a.size, .width = narrow(s.x.cols())}));
  return {.size = a.size, .count = a.groups, .experts = a.experts, .slots = a.slots, .x = row};
}

// a, with the weight's expert of each group.
void Lowerer::expert_products(MatvecArgs a, const float* x, const Groups& g, const Tensor& weight) {
  const quant::FormatInfo& format = ops::format_of(weight);
  a.tokens = g.size;
  a.planes = format.is_float ? 1 : how_.planes;
  a.k = narrow(weight.cols());
  a.block = format.is_float ? 0 : format.activation_block(weight.cols());
  a.ids = g.experts;
  a.pairs = g.count;
  a.inputs_shared = narrow(g.shared);
  if (a.epilogue == Epilogue::kGated && !can_gate(a))
    fail(Code::kBadData, "[backend/gpu] experts whose gate is in {} and up in {} are not served",
         quant::find_format(a.parts[0].weight.format)->name,
         quant::find_format(a.parts[1].weight.format)->name);
  const QuantiseArgs round{.x = x,
                           .tokens = narrow(int64_t{g.count} * g.size / g.shared),
                           .k = a.k,
                           .block = a.block,
                           .planes = a.planes};
  input(a, round, format.is_float);
  add_products(a);
}

// Pair t·top_k + i is token t with its i-th expert: gate and up of its input, act(gate) ∘ up, down, and all
// pairs of a token combined.
void Lowerer::operator()(const ExpertsStep& s) {
  const int64_t top_k = s.routes.ids.cols(), pairs = s.x.rows() * top_k, ffn = s.w.gate.rows();
  const auto slots = static_cast<size_t>(most_slots(pairs, s.w.gate.shape.planes));
  auto* const inner = reinterpret_cast<float*>(s.scratch);  // [slots, ffn]
  auto* const outputs = reinterpret_cast<float*>(
      s.scratch + aligned(slots * static_cast<size_t>(ffn) * sizeof(float)));  // [slots, dim]
  std::byte* const numbers = reinterpret_cast<std::byte*>(outputs) +
                             aligned(slots * static_cast<size_t>(s.x.cols()) * sizeof(float));
  // The inputs of groups lie where their outputs will.
  const Groups groups = group(s, outputs, numbers);

  MatvecArgs in;
  in.part_count = 2;
  in.parts[0] = {.weight = device_weight(s.w.gate), .y = inner, .y_stride = ffn};
  in.parts[1] = {.weight = device_weight(s.w.up), .y = inner, .y_stride = ffn};
  in.epilogue = Epilogue::kGated;
  in.act = static_cast<int32_t>(s.w.act);
  expert_products(in, groups.x, groups, s.w.gate);
  MatvecArgs out;
  out.parts[0] = {.weight = device_weight(s.w.down), .y = outputs, .y_stride = s.x.cols()};
  Groups alone = groups;
  alone.shared = 1;
  expert_products(out, inner, alone, s.w.down);
  add(plan(CombineArgs{.outputs = outputs,
                       .ids = s.routes.ids.i32(),
                       .weights = s.routes.weights.f32(),
                       .y = s.y.f32(),
                       .tokens = narrow(s.x.rows()),
                       .top_k = narrow(top_k),
                       .width = narrow(s.x.cols()),
                       .slots = groups.slots}));
}

}  // namespace

Lowered lower(const Steps& steps, const Lowering& how) {
  Lowerer lowerer(how);
  for (const Step& step : steps) {
    lowerer.next();
    std::visit(lowerer, step);
  }
  return lowerer.finish();
}

size_t experts_scratch_bytes(const ops::Experts& w, int64_t tokens, int64_t top_k) {
  const auto slots = static_cast<size_t>(most_slots(tokens * top_k, w.gate.shape.planes));
  return aligned(slots * static_cast<size_t>(w.gate.rows()) * sizeof(float)) +
         aligned(slots * static_cast<size_t>(w.gate.cols()) * sizeof(float)) +
         3 * aligned(slots * sizeof(int32_t));
}

Weight device_weight(const Tensor& w) {
  const auto format = static_cast<uint32_t>(w.dtype);
  return {.data = static_cast<const uint8_t*>(w.data),
          .format = format,
          .rows = narrow(w.rows()),
          .cols = narrow(w.cols()),
          .plane_bytes = device_bytes(format, w.rows(), w.cols())};
}

}  // namespace juno::gpu
