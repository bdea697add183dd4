// SPDX-License-Identifier: Apache-2.0
// From logits to a token, to the bit (docs/numerics.md §10). The steps and their order, as in llama.cpp's
// default chain: mask, bias, penalties, [greedy ends here], top-k, typical, top-p, min-p, temperature, draw.
// docs/sampling.md defines each.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "engine/sampling.h"
#include "ops/batch.h"

namespace juno::engine {

// Which tokens may be picked at all.
struct Allowed {
  std::span<const uint64_t> mask;  // token id where bit id is set; empty: every token
  std::span<const int32_t> ends;   // end tokens, of which `may_end` decides and not the mask
  bool may_end = true;
};

struct Score {
  float logprob = 0;
  std::span<const Scored> top;  // most probable first, among equals the lowest id; valid until the next call
};

struct Pick {
  int32_t id = -1;  // -1: no token is allowed
  std::optional<Score> score;
};

// Holds only scratch memory: a pick is a function of its arguments. Allocates nothing after construction.
class Sampler {
 public:
  // vocab: tokens of the tokenizer; logits past them (padding rows of the embedding) are never looked at.
  explicit Sampler(int32_t vocab);

  // logits: at least `vocab` finite values. history: the tokens so far, prompt included, newest last.
  // position: that of the token being chosen, which with the seed decides the random number.
  Pick pick(const SamplingParams& params, std::span<const float> logits, std::span<const int32_t> history,
            int64_t position, const Allowed& allowed = {});

  // The same pick from the greatest logits only, in their order; nothing where they do not decide it. The
  // parameters raise no logit (engine::need).
  std::optional<Pick> pick(const SamplingParams& params, std::span<const ops::TopLogit> greatest,
                           std::span<const int32_t> history, int64_t position, const Allowed& allowed = {});

  // What the unchanged logits say of a token, and of the `top` most probable (at most kMostTop).
  Score score(std::span<const float> logits, int32_t id, int top);

 private:
  struct Candidate {
    uint32_t key;  // orders like the logit, the largest logit first
    int32_t id;
    float logit, p;
    bool operator<(const Candidate& c) const { return key != c.key ? key < c.key : id < c.id; }
  };

  bool known(int32_t id) const { return id >= 0 && id < static_cast<int32_t>(counts_.size()); }
  void exclude(std::span<const float> logits, const Allowed& allowed);
  void penalise(const SamplingParams& params, std::span<const int32_t> history);
  void lower(const SamplingParams& params, std::span<const int32_t> history, const Allowed& allowed);
  std::span<const int32_t> count(const SamplingParams& params, std::span<const int32_t> history);
  int32_t choose(const SamplingParams& params, int64_t position);
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

  std::vector<float> logits_;            // [vocab], -inf where a token is not allowed
  std::vector<int32_t> counts_;          // [vocab], all zero between picks
  std::vector<Candidate> best_, other_;  // [≤ vocab], sorted by logit descending, id ascending
  std::vector<Scored> top_;              // [≤ kMostTop]
};

}  // namespace juno::engine
