// SPDX-License-Identifier: Apache-2.0
#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/math_double.h"

namespace juno::model {
namespace {

void divide(ops::Rope& rope, Loader& in, std::string_view name) {
  const std::vector<float> divisors = in.values(name, int64_t(rope.freq.size()));
  for (size_t i = 0; i < divisors.size(); ++i) {
    if (std::isfinite(divisors[i]) && divisors[i] > 0) {
      rope.freq[i] /= divisors[i];
    } else {
      in.fault(name,
               fmt::format("{}.weight holds {} at {}, not a finite number above 0", name, divisors[i], i));
    }
  }
}

void scale_longrope(ops::Rope& rope, Loader& in) {
  const RopeScaling& s = in.config().rope_scaling;
  if (s.original_context == 0) in.keys().fault("rope.scaling.original_context_length", "is missing");
  const bool long_set = in.config().context > s.original_context;
  in.values(long_set ? "rope_factors_short" : "rope_factors_long",
            int64_t(rope.freq.size()));  // must be there too
  divide(rope, in, long_set ? "rope_factors_long" : "rope_factors_short");
  if (s.attention_factor > 0) rope.magnitude = s.attention_factor;
}

// The pair (not rounded) that turns `turns` times over the original context.
double pair_of(const Config& c, double turns) {
  const double period = double(c.rope_scaling.original_context) / (turns * 2 * std::numbers::pi);
  return c.rope_dims * f64::log(period) / (2 * f64::log(c.rope_base));
}

// Fast pairs keep their frequency, slow ones are divided by the factor, those between are blended.
void scale_yarn(ops::Rope& rope, const Config& c) {
  const RopeScaling& s = c.rope_scaling;
  const double first = std::max(std::floor(pair_of(c, s.beta_fast)), 0.0);
  double last = std::min(std::ceil(pair_of(c, s.beta_slow)), c.rope_dims - 1.0);
  if (last == first) last += 0.001;
  for (size_t i = 0; i < rope.freq.size(); ++i) {
    const double slow = std::clamp((double(i) - first) / (last - first), 0.0, 1.0);
    rope.freq[i] = rope.freq[i] / s.factor * slow + rope.freq[i] * (1 - slow);
  }
  if (s.attention_factor > 0) {
    rope.magnitude = s.attention_factor;
  } else if (s.factor > 1) {
    rope.magnitude = 0.1 * f64::log(s.factor) + 1;
  }
}

}  // namespace

ops::Rope plain_rope(const Config& config, double base, RopeLayout layout) {
  ops::Rope rope{.head_dim = config.key_dim, .interleaved = layout == RopeLayout::kInterleaved};
  for (int i = 0; i < config.rope_dims / 2; ++i) {
    rope.freq.push_back(f64::pow(base, -2.0 * i / config.rope_dims));
  }
  return rope;
}

ops::Rope make_rope(Loader& in, RopeLayout layout) {
  const Config& c = in.config();
  ops::Rope rope = plain_rope(c, c.rope_base, layout);
  if (in.has("rope_freqs")) divide(rope, in, "rope_freqs");

  const std::string& type = c.rope_scaling.type;
  if (type == "longrope" || in.has("rope_factors_long") || in.has("rope_factors_short")) {
    scale_longrope(rope, in);
  } else if (type == "yarn") {
    scale_yarn(rope, c);
  } else if (type == "linear") {
    for (double& freq : rope.freq) freq /= c.rope_scaling.factor;
  }
  return rope;
}

}  // namespace juno::model
