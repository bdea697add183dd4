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
// One row of at most so many activations is rounded by each block of a product for itself; more are rounded
// by a launch of its own. Measured on an H200: inside costs 1 us at 576, 2.5 at 2048, 5 at 4096, and a launch
// 2 to 3.
constexpr int kRoundedInside = 2048;

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

int32_t narrow(int64_t n) { return static_cast<int32_t>(n); }

NormWeights norm_weights(const ops::Norm& n) {
  if (!n.weight) return {};
  return {
      .weight = n.weight.f32(), .bias = n.bias ? n.bias.f32() : nullptr, .eps = n.eps, .centred = n.centred};
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
    if (launch.grid.count() > 0) out_.launches.push_back(launch);
  }
  template <class T>
  T* take(size_t count);
  Rounded rounded(int64_t rows, int64_t k, int block);
  // The input of products as they take it: as it is, or rounded by a launch before them.
  void input(MatvecArgs& a, const QuantiseArgs& x, bool is_float);
  void products(MatvecArgs a);
  // The same for more rows than those launches serve at once; false where there is no kernel for that.
  bool many_products(const MatvecArgs& a, const QuantiseArgs& x);
  Panels panels(const RoundArgs& round);
  bool prompt_attention(const AttendArgs& a);

  const Lowering& how_;
  Lowered out_;
  size_t used_ = 0;
};

template <class T>
T* Lowerer::take(size_t count) {
  // As a number: while its size is asked for there is no workspace yet.
  const auto at = reinterpret_cast<uintptr_t>(how_.memory.workspace) + used_;
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
  if (is_float || (x.tokens * x.planes == 1 && x.k <= kRoundedInside)) {
    a.from = x.x;
    a.up = x.up;
    a.norm = x.norm;
    a.source = x.source;
    a.from_act = x.act;
    return;
  }
  QuantiseArgs round = x;
  round.y = rounded(int64_t{x.tokens} * x.planes, x.k, x.block);
  add(plan(round));
  a.x = round.y;
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
    for (const Launch& one : plan(part, how_.chip)) add(one);
  }
}

Panels Lowerer::panels(const RoundArgs& round) {
  RoundArgs a = round;
  const int64_t rows = int64_t{a.tokens} * a.planes;
  a.y = panels_at(take<std::byte>(panels_bytes(rows, a.k, a.block)), rows, a.k);
  add(plan(a));
  return a.y;
}

bool Lowerer::many_products(const MatvecArgs& a, const QuantiseArgs& x) {
  for (int i = 0; i < a.part_count; ++i)
    if (many_unit(a.parts[i].weight.format, a.k) == 0) return false;
  RoundArgs round{.x = x.x,
                  .up = x.source == Source::kGated ? x.up : nullptr,
                  .act = x.act,
                  .tokens = x.tokens,
                  .k = x.k,
                  .block = x.block,
                  .planes = x.planes};
  if (x.source == Source::kNorm) {
    auto* normed = take<float>(static_cast<size_t>(x.tokens) * static_cast<size_t>(x.k));
    add(plan(NormArgs{.x = x.x, .y = normed, .w = x.norm, .n = x.k, .runs = x.tokens}));
    round.x = normed;
  }
  Panels of_unit[kStageDepth / 32 + 1] = {};
  for (int i = 0, next = 0; i < a.part_count; i = next) {
    const uint32_t format = a.parts[i].weight.format;
    round.unit = many_unit(format, a.k);
    Panels& rounded = of_unit[round.unit / 32];
    if (!rounded.q) rounded = panels(round);
    ManyArgs many{.part_count = 0,
                  .x = rounded,
                  .rows = x.tokens * x.planes,
                  .planes = x.planes,
                  .k = a.k,
                  .block = a.block,
                  .residual = a.epilogue == Epilogue::kAdd ? a.residual : nullptr};
    for (next = i; next < a.part_count && a.parts[next].weight.format == format; ++next)
      many.parts[many.part_count++] = a.parts[next];
    add(plan(many));
  }
  return true;
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
  if (!format.is_float && a.tokens * a.planes > kMatvecRows && many_products(a, x)) {
    if (s.gated) (*this)(ElementStep{Elementwise::kGated, s.gated, s.parts[0].y, s.parts[1].y, 0, s.act});
    return;
  }
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
  PrepareArgs before{.k = s.k.f32(),
                     .v = s.v.f32(),
                     .k_stride = s.k.cols(),
                     .v_stride = s.v.cols(),
                     .q_norm = norm_weights(s.q_norm),
                     .k_norm = norm_weights(s.k_norm),
                     .rope = s.rope,
                     .places = places,
                     .rows = narrow(s.k.rows())};
  const int32_t heads = narrow(s.q.cols() / s.how.key_dim);
  if (s.table) {
    before.q = s.q.f32();
    before.q_stride = s.q.cols();
    before.q_out = s.q_out.f32();
    before.heads = heads;
    before.table = s.table.f32();
  }
  add(plan(before));

  const ops::ScoreScale scale = ops::score_scale(s.how);
  AttendArgs a{.q = s.table ? s.q_out.f32() : s.q.f32(),
               .y = s.y.f32(),
               .places = places,
               .rows = before.rows,
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
  const size_t parts = attend_parts_bytes(a, how_.chip);
  if (parts > 0) a.parts = take<float>(parts / sizeof(float));
  add(plan_attend(a, how_.chip));
  if (parts > 0) add(plan_attend_merge(a));
}

bool Lowerer::prompt_attention(const AttendArgs& a) {
  const PromptArgs prompt{.q = a.q,
                          .y = a.y,
                          .places = a.places,
                          .rows = a.rows,
                          .heads = a.heads,
                          .window = a.window,
                          .capped = a.capped,
                          .before = a.before,
                          .after = a.after};
  if (!how_.memory.runs || !can_attend_prompt(prompt)) return false;
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

// Pair t·top_k + i is token t with its i-th expert: gate and up of its input, act(gate) ∘ up, down, and all
// pairs of a token combined.
void Lowerer::operator()(const ExpertsStep& s) {
  const int64_t tokens = s.x.rows(), top_k = s.routes.ids.cols(), pairs = tokens * top_k;
  const int64_t ffn = s.w.gate.rows();
  auto* inner = reinterpret_cast<float*>(s.scratch);  // [pairs, ffn]
  auto* outputs =
      reinterpret_cast<float*>(s.scratch + aligned(size_t(pairs * ffn) * sizeof(float)));  // [pairs, dim]

  const auto multiply = [&](MatvecArgs a, const float* x, int64_t inputs, const Tensor& weight) {
    const quant::FormatInfo& format = ops::format_of(weight);
    a.tokens = 1;
    a.planes = format.is_float ? 1 : how_.planes;
    a.k = narrow(weight.cols());
    a.block = format.is_float ? 0 : format.activation_block(weight.cols());
    a.ids = s.routes.ids.i32();
    a.pairs = narrow(pairs);
    a.inputs_shared = narrow(pairs / inputs);
    const QuantiseArgs round{
        .x = x, .tokens = narrow(inputs), .k = a.k, .block = a.block, .planes = a.planes};
    input(a, round, format.is_float);
    for (const Launch& one : plan(a, how_.chip)) add(one);
  };

  MatvecArgs in;
  in.part_count = 2;
  in.parts[0] = {.weight = device_weight(s.w.gate), .y = inner, .y_stride = ffn};
  in.parts[1] = {.weight = device_weight(s.w.up), .y = inner, .y_stride = ffn};
  in.epilogue = Epilogue::kGated;
  in.act = static_cast<int32_t>(s.w.act);
  multiply(in, s.x.f32(), tokens, s.w.gate);
  MatvecArgs out;
  out.parts[0] = {.weight = device_weight(s.w.down), .y = outputs, .y_stride = s.x.cols()};
  multiply(out, inner, pairs, s.w.down);
  add(plan(CombineArgs{.outputs = outputs,
                       .ids = s.routes.ids.i32(),
                       .weights = s.routes.weights.f32(),
                       .y = s.y.f32(),
                       .tokens = narrow(tokens),
                       .top_k = narrow(top_k),
                       .width = narrow(s.x.cols())}));
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
  const auto pairs = static_cast<size_t>(tokens * top_k);
  return aligned(pairs * static_cast<size_t>(w.gate.rows()) * sizeof(float)) +
         pairs * static_cast<size_t>(w.gate.cols()) * sizeof(float);
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
