// SPDX-License-Identifier: Apache-2.0
// Holds a session to tests/data/goldens: what transformers computes in f32 from the same file.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/session.h"
#include "tokenizer/tokenizer.h"

namespace juno::api {

using Json = nlohmann::ordered_json;

inline const std::string kSource = JUNO_SOURCE_DIR;
inline std::string arch(const std::string& name) { return kSource + "/tests/data/archs/" + name + ".gguf"; }
inline const std::string kDemo = kSource + "/models/juno-demo-23m.Q8_0.gguf";

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

inline Json golden_json(const std::string& name) {
  return Json::parse(read_file(kSource + "/tests/data/goldens/" + name));
}

inline std::unique_ptr<Session> open_session(const std::string& path, const std::string& activations = "int8",
                                             int64_t context = 1024) {
  return take(Session::open({.model_path = path, .context = context, .activations = activations}));
}

// The bounds of tests/data/goldens/README.md for one arithmetic.
struct Bounds {
  double logits, kl, nll;    // of each prompt
  double mean_kl, mean_nll;  // over the prompts
  double argmax_rate;        // share of positions that may differ …
  int argmax_least;          // … or this many in a prompt; 0: the share counts over all prompts
  double margin;             // greedy may diverge only where the reference's best two are closer
  double perplexity;         // of the run over a text
};
inline constexpr Bounds kInt8{3, 0.05, 0.15, 0.01, 0.04, 0.1, 4, 1.0, 0.015};
inline constexpr Bounds kInt8x2{0.1, 1e-4, 0.004, 1e-4, 0.004, 1.0 / 200, 0, 0.1, 1e-3};

inline std::vector<Message> messages_of(const Json& list) {
  std::vector<Message> messages;
  for (const Json& m : list) messages.push_back({m["role"], m["content"]});
  return messages;
}

// What one prompt's logits are, beside the golden's.
struct Distance {
  double logits = 0, kl = 0, nll = 0;
  int flips = 0, positions = 0;
};

inline double logsumexp(std::span<const float> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float l : row) sum += std::exp(l - largest);
  return largest + std::log(sum);
}

// KL(golden ‖ row) over the golden's twenty best and all others as one: at most the true one, and close to
// it.
inline double divergence(const Json& golden, std::span<const float> row, double lse) {
  const double golden_lse = golden["logsumexp"];
  double kl = 0, p_rest = 1, q_rest = 1;
  for (const Json& best : golden["top20"]) {
    const double log_p = best[1].get<double>() - golden_lse, log_q = row[best[0].get<size_t>()] - lse;
    kl += std::exp(log_p) * (log_p - log_q);
    p_rest -= std::exp(log_p);
    q_rest -= std::exp(log_q);
  }
  return p_rest > 1e-6 && q_rest > 0 ? kl + p_rest * std::log(p_rest / q_rest) : kl;
}

inline Distance measure(Session& session, const Json& golden) {
  const std::vector<int32_t> ids = golden["ids"];
  Distance d{.positions = static_cast<int>(ids.size())};
  double nll = 0;
  const auto on_logits = [&](int64_t position, std::span<const float> row) {
    const auto at = static_cast<size_t>(position);
    const double lse = logsumexp(row);
    const auto argmax = std::max_element(row.begin(), row.end()) - row.begin();
    d.flips += argmax != golden["argmax"][at].get<ptrdiff_t>();
    if (at + 1 < ids.size()) {
      nll += lse - row[static_cast<size_t>(ids[at + 1])];
      return;
    }
    d.logits = std::abs(lse - golden["logsumexp"].get<double>());
    for (const Json& best : golden["top20"]) {
      d.logits = std::max(d.logits, std::abs(row[best[0].get<size_t>()] - best[1].get<double>()));
    }
    d.kl = divergence(golden, row, lse);
  };
  take(session.logits(ids, {}, 0, on_logits));
  if (ids.size() > 1) d.nll = nll / static_cast<double>(ids.size() - 1) - golden["mean_nll"].get<double>();
  return d;
}

inline void expect_ids(Session& session, const Json& given, const Json& golden) {
  const std::vector<int32_t> ids = golden["ids"];
  if (given.contains("messages")) {
    EXPECT_EQ(take(session.chat_ids(messages_of(given["messages"]))), ids) << golden["name"];
  } else {
    EXPECT_EQ(session.tokenizer().encode(given["text"].get<std::string>(), {.add_special = true}), ids)
        << golden["name"];
  }
}

// The greedy continuation equals the golden's, up to where the reference itself hesitates by less than
// `margin`.
inline void expect_greedy(Session& session, const Json& golden, double margin) {
  const std::vector<int32_t> expected = golden["greedy"];
  const Reply reply =
      take(session.complete(golden["ids"].get<std::vector<int32_t>>(), {.max_tokens = 64}, {}));
  const auto [ours, theirs] =
      std::mismatch(reply.ids.begin(), reply.ids.end(), expected.begin(), expected.end());
  if (theirs == expected.end()) {
    EXPECT_EQ(session.tokenizer().decode(reply.ids, true), golden["greedy_text"].get<std::string>());
    return;
  }
  const auto step = static_cast<size_t>(theirs - expected.begin());
  EXPECT_LT(golden["margins"][step].get<double>(), margin) << golden["name"] << " diverges at step " << step;
}

inline void expect_prompts(Session& session, const std::string& name, const Bounds& bounds) {
  const Json golden = golden_json(name), cases = golden_json("cases.json");
  double kl = 0, nll = 0;
  int flips = 0, positions = 0;
  const size_t count = golden["prompts"].size();
  ASSERT_EQ(count, 10u);
  for (size_t i = 0; i < count; ++i) {
    const Json& prompt = golden["prompts"][i];
    const std::string which = prompt["name"];
    expect_ids(session, cases["prompts"][i], prompt);
    const Distance d = measure(session, prompt);
    EXPECT_LE(d.logits, bounds.logits) << which;
    EXPECT_LE(d.kl, bounds.kl) << which;
    EXPECT_LE(std::abs(d.nll), bounds.nll) << which;
    if (bounds.argmax_least > 0) {
      EXPECT_LE(d.flips, std::max<double>(bounds.argmax_least, bounds.argmax_rate * d.positions)) << which;
    }
    expect_greedy(session, prompt, bounds.margin);
    kl += d.kl / static_cast<double>(count);
    nll += std::abs(d.nll) / static_cast<double>(count);
    flips += d.flips;
    positions += d.positions;
  }
  EXPECT_LE(kl, bounds.mean_kl);
  EXPECT_LE(nll, bounds.mean_nll);
  EXPECT_LE(flips, bounds.argmax_rate * positions) << "of " << positions;
}

}  // namespace juno::api
