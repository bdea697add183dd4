// SPDX-License-Identifier: Apache-2.0
// From logits to a token, to the bit (docs/numerics.md §10). The steps and their order, as in llama.cpp's
// default chain: bias, penalties, [greedy ends here], top-k, typical, top-p, min-p, temperature, draw.
// docs/sampling.md defines each.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "engine/sampling.h"

namespace juno::engine {

struct Pick {
  int32_t id = -1;
  std::optional<float> logprob;  // ln of its softmax over the unchanged logits of the vocabulary
};

// Holds only scratch memory: a pick is a function of its arguments. Allocates nothing after construction.
class Sampler {
 public:
  // vocab: tokens of the tokenizer; logits past them (padding rows of the embedding) are never looked at.
  explicit Sampler(int32_t vocab);

  // logits: at least `vocab` finite values. history: the tokens so far, prompt included, newest last.
  // position: that of the token being chosen, which with the seed decides the random number.
  Pick pick(const SamplingParams& params, std::span<const float> logits, std::span<const int32_t> history,
            int64_t position);

 private:
  struct Candidate {
    uint32_t key;  // orders like the logit, the largest logit first
    int32_t id;
    float logit, p;
  };

  void penalise(const SamplingParams& params, std::span<const int32_t> history);
  int32_t greedy() const;
  void sort(int top_k);
  void select(size_t count);
  Candidate candidate(int32_t id) const;
  void radix_sort();
  float weigh(float temperature);
  void keep_typical(float mass);
  void keep_top_p(float mass);
  void keep_min_p(float ratio);
  int32_t draw(float temperature, float u);
  float logprob(std::span<const float> logits, int32_t id);

  std::vector<float> logits_;            // [vocab]
  std::vector<int32_t> counts_;          // [vocab], all zero between picks
  std::vector<Candidate> best_, other_;  // [≤ vocab], sorted by logit descending, id ascending
};

}  // namespace juno::engine
