// SPDX-License-Identifier: Apache-2.0
#include "ops/route.h"

#include <algorithm>

#include "base/math.h"

namespace juno::ops {

// Both kinds of score grow with the logit, so experts are chosen by score all the same: two logits may round
// to one score, and then the lower id wins.
void route_row(const float* logits, int experts, const Router& how, int32_t* ids, float* weights) {
  float top = logits[0], sum = 0;
  for (int e = 1; e < experts; ++e) top = logits[e] > top ? logits[e] : top;
  for (int e = 0; e < experts && !how.sigmoid; ++e) sum = sum + exp(logits[e] - top);
  const auto score = [&](int e) { return how.sigmoid ? sigmoid(logits[e]) : exp(logits[e] - top) / sum; };

  for (int i = 0; i < how.top_k; ++i) {
    int best = -1;
    float best_score = 0;
    for (int e = 0; e < experts; ++e) {
      if (std::find(ids, ids + i, e) != ids + i) continue;
      const float s = score(e);
      if (best >= 0 && !(s > best_score)) continue;
      best = e;
      best_score = s;
    }
    ids[i] = best;
    weights[i] = best_score;
  }
  if (!how.normalise) return;
  float chosen = 0;
  for (int i = 0; i < how.top_k; ++i) chosen = chosen + weights[i];
  for (int i = 0; i < how.top_k; ++i) weights[i] = weights[i] / chosen;
}

}  // namespace juno::ops
