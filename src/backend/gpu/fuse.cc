// SPDX-License-Identifier: Apache-2.0
// A value is private when one step alone reads it: then its writer and its reader can become one. Memory is
// handed out from the front of an arena and given back at a layer's end, so a step may move up to any place
// after its inputs are there, as long as nobody between touches what it writes.
#include "backend/gpu/fuse.h"

#include <algorithm>
#include <optional>

#include "ops/weight.h"

namespace juno::gpu {
namespace {

constexpr size_t kMaxParts = 3;

class Fuser {
 public:
  Fuser(Steps steps, const Tensors& results) : steps_(std::move(steps)), results_(results) {}

  Steps run(bool many) {
    for (size_t i = 0; i < steps_.size(); ++i) i = prepare_attention(i);
    for (size_t i = 0; i < steps_.size(); ++i) share_input(i);
    for (size_t i = 0; i < steps_.size(); ++i) many ? gate_on_the_way_in(i) : gate(i);
    for (size_t i = 0; i < steps_.size(); ++i) add_residual(i);
    for (size_t i = 0; i < steps_.size(); ++i) norm_on_the_way_in(i);
    for (size_t i = 0; i < steps_.size(); ++i) end_in_place(i);
    return std::move(steps_);
  }

 private:
  template <class T>
  T* at(size_t i) {
    return i < steps_.size() ? std::get_if<T>(&steps_[i]) : nullptr;
  }
  void drop(size_t i) { steps_.erase(steps_.begin() + static_cast<ptrdiff_t>(i)); }

  // The step before `from` that wrote x last.
  std::optional<size_t> writer(const Tensor& x, size_t from) const;
  // Whether step `reader` alone reads what step `writer` left in x, before it is written over.
  bool is_private(const Tensor& x, size_t writer, size_t reader) const;

  size_t prepare_attention(size_t i);
  size_t take_rope(size_t i, Tensor AttentionStep::*side);
  size_t take_norm(size_t i, Tensor AttentionStep::*side, ops::Norm AttentionStep::*norm);
  void share_input(size_t i);
  void gate(size_t i);
  void gate_on_the_way_in(size_t i);
  void add_residual(size_t i);
  void norm_on_the_way_in(size_t i);
  void end_in_place(size_t i);

  Steps steps_;
  const Tensors& results_;
};

bool touches(const Tensors& all, const Tensor& x) {
  return std::ranges::any_of(all, [&](const Tensor& t) { return overlap(t, x); });
}

std::optional<size_t> Fuser::writer(const Tensor& x, size_t from) const {
  for (size_t i = from; i-- > 0;)
    if (touches(writes(steps_[i]), x)) return i;
  return {};
}

bool Fuser::is_private(const Tensor& x, size_t writer, size_t reader) const {
  for (size_t i = writer + 1; i < steps_.size(); ++i) {
    if (i != reader && touches(reads(steps_[i]), x)) return false;
    if (i > reader && touches(writes(steps_[i]), x)) return true;  // written over: nobody can read it later
  }
  return !touches(results_, x);
}

// q = rope(norm(q)), likewise k, attention: what PrepareArgs does before attention. -> where attention is
// now.
size_t Fuser::prepare_attention(size_t i) {
  AttentionStep* a = at<AttentionStep>(i);
  if (!a) return i;
  const auto rope_of = [&](const Tensor& x) -> const RopeStep* {
    const auto w = writer(x, i);
    const RopeStep* rope = w ? at<RopeStep>(*w) : nullptr;
    return rope && same(rope->y, x) && is_private(x, *w, i) ? rope : nullptr;
  };
  const RopeStep *q = rope_of(a->q), *k = rope_of(a->k);
  if (!q || !k || !same(q->table, k->table) || q->shape.head_dim != a->how.key_dim ||
      k->shape.head_dim != a->how.key_dim || q->shape.interleaved != k->shape.interleaved)
    return i;
  a->table = q->table;
  a->rope = q->shape;
  a->q_out = a->q;
  i = take_rope(i, &AttentionStep::q);
  i = take_rope(i, &AttentionStep::k);
  i = take_norm(i, &AttentionStep::q, &AttentionStep::q_norm);
  return take_norm(i, &AttentionStep::k, &AttentionStep::k_norm);
}

size_t Fuser::take_rope(size_t i, Tensor AttentionStep::*side) {
  AttentionStep& a = *at<AttentionStep>(i);
  const size_t w = *writer(a.*side, i);
  a.*side = at<RopeStep>(w)->x;
  drop(w);
  return i - 1;
}

size_t Fuser::take_norm(size_t i, Tensor AttentionStep::*side, ops::Norm AttentionStep::*norm) {
  AttentionStep& a = *at<AttentionStep>(i);
  const auto w = writer(a.*side, i);
  const NormStep* n = w ? at<NormStep>(*w) : nullptr;
  if (!n || !same(n->y, a.*side) || n->w.weight.cols() != a.how.key_dim || !is_private(n->y, *w, i)) return i;
  a.*norm = n->w;
  a.*side = n->x;
  drop(*w);
  return i - 1;
}

// Products of the same input in one launch, where the same rounded activations serve all.
void Fuser::share_input(size_t i) {
  LinearStep* first = at<LinearStep>(i);
  if (!first) return;
  const auto kind = [](const LinearStep& l) {
    const quant::FormatInfo& f = ops::format_of(l.parts[0].w.weight);
    return std::pair(f.is_float, f.is_float ? 0 : f.activation_block(l.x.cols()));
  };
  for (size_t j = i + 1; j < steps_.size() && first->parts.size() < kMaxParts; ++j) {
    const ElementStep* element = at<ElementStep>(j);
    const bool reuses_memory =
        at<AttentionStep>(j) || at<ExpertsStep>(j) || (element && element->what == Elementwise::kCopy);
    if (reuses_memory || touches(writes(steps_[j]), first->x)) return;
    const LinearStep* next = at<LinearStep>(j);
    if (!next || !same(next->x, first->x) || kind(*next) != kind(*first)) continue;
    first->parts.push_back(next->parts[0]);
    drop(j);
    first = at<LinearStep>(i);
    --j;
  }
}

// act(gate) ∘ up, right where gate and up come out.
void Fuser::gate(size_t i) {
  LinearStep* l = at<LinearStep>(i);
  const ElementStep* g = at<ElementStep>(i + 1);
  if (!l || !g || g->what != Elementwise::kGated || l->parts.size() != 2 || !same(l->parts[0].y, g->a) ||
      !same(l->parts[1].y, g->b) || !is_private(g->a, i, i + 1) || !is_private(g->b, i, i + 1))
    return;
  l->epilogue = Epilogue::kGated;
  l->act = g->act;
  l->gated = g->y;
  drop(i + 1);
}

// act(gate) ∘ up that one product reads.
void Fuser::gate_on_the_way_in(size_t i) {
  const ElementStep* g = at<ElementStep>(i);
  LinearStep* l = at<LinearStep>(i + 1);
  if (!g || !l || g->what != Elementwise::kGated || !same(g->y, l->x) || l->source != Source::kPlain ||
      !is_private(g->y, i, i + 1) || ops::format_of(l->parts[0].w.weight).is_float ||
      touches(l->writes(), g->a) || touches(l->writes(), g->b))
    return;
  l->source = Source::kGated;
  l->act = g->act;
  l->x = g->a;
  l->up = g->b;
  drop(i);
}

// x + product.
void Fuser::add_residual(size_t i) {
  LinearStep* l = at<LinearStep>(i);
  const ElementStep* add = at<ElementStep>(i + 1);
  if (!l || !add || add->what != Elementwise::kAdd || l->parts.size() != 1 || l->epilogue != Epilogue::kStore)
    return;
  const Tensor& product = l->parts[0].y;
  const bool left = same(product, add->a), right = same(product, add->b);
  if (left == right || !is_private(product, i, i + 1) || overlap(add->y, l->x) || overlap(add->y, l->up))
    return;
  l->residual = left ? add->b : add->a;
  l->epilogue = Epilogue::kAdd;
  l->parts[0].y = add->y;
  drop(i + 1);
}

// A norm of whole rows that only products read.
void Fuser::norm_on_the_way_in(size_t i) {
  const NormStep* n = at<NormStep>(i);
  LinearStep* l = at<LinearStep>(i + 1);
  if (!n || !l || !same(n->y, l->x) || l->source != Source::kPlain || !n->whole_rows() ||
      !is_private(n->y, i, i + 1) || ops::format_of(l->parts[0].w.weight).is_float ||
      touches(l->writes(), n->x) || overlap(l->residual, n->y))
    return;
  l->source = Source::kNorm;
  l->norm = n->w;
  l->x = n->x;
  drop(i);
}

// The copy to where a layer's result belongs: its writer writes there at once.
void Fuser::end_in_place(size_t i) {
  const ElementStep* copy = at<ElementStep>(i);
  if (!copy || copy->what != Elementwise::kCopy || i == 0 || !is_private(copy->a, i - 1, i)) return;
  Tensor* y = nullptr;
  if (LinearStep* l = at<LinearStep>(i - 1); l && l->epilogue != Epilogue::kGated && l->parts.size() == 1) {
    if (!overlap(copy->y, l->x) && !overlap(copy->y, l->up) &&
        !(overlap(copy->y, l->residual) && !same(copy->y, l->residual)))
      y = &l->parts[0].y;
  } else if (ElementStep* e = at<ElementStep>(i - 1)) {
    const auto clear = [&](const Tensor& t) { return !overlap(copy->y, t) || same(copy->y, t); };
    if (clear(e->a) && clear(e->b)) y = &e->y;
  }
  if (!y || !same(*y, copy->a)) return;
  *y = copy->y;
  drop(i);
}

}  // namespace

Steps fuse(Steps steps, const Tensors& results, bool many) {
  return Fuser(std::move(steps), results).run(many);
}

}  // namespace juno::gpu
