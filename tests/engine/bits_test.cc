// SPDX-License-Identifier: Apache-2.0
// docs/numerics.md: chunk, company and seed. The same tokens give the same bits, however they were computed.
#include <fstream>
#include <set>
#include <sstream>

#include "engine/engine_fixture.h"

namespace juno::engine {
namespace {

// A line of tests/golden/logits.txt.
struct Golden {
  std::string model, profile, hash;
  std::vector<int32_t> ids;
};

std::vector<Golden> goldens() {
  std::ifstream in(kSource + "/tests/golden/logits.txt");
  std::vector<Golden> all;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    Golden g;
    std::string ids;
    std::istringstream(line) >> g.model >> g.profile >> ids >> g.hash;
    std::istringstream list(ids);
    for (std::string id; std::getline(list, id, ',');) g.ids.push_back(std::stoi(id));
    all.push_back(std::move(g));
  }
  return all;
}

ops::Activations profile(const Golden& g) {
  return g.profile == "int8" ? ops::Activations::kInt8 : ops::Activations::kInt8x2;
}

TEST(Bits, EqualTheGoldenHashes) {
  const auto all = goldens();
  ASSERT_GE(all.size(), 4u) << "the demo model in both profiles and two fixtures";
  for (const Golden& g : all) {
    Machine m = machine(kSource + "/" + g.model, {.context = 64}, profile(g));
    ASSERT_TRUE(m.engine->set_chunk(32, 32));
    EXPECT_EQ(fmt::format("{:016x}", logits_hash(*m.engine, g.ids)), g.hash) << g.model << " " << g.profile;
  }
}

TEST(Bits, DoNotDependOnTheChunk) {
  for (const Golden& g : goldens()) {
    const auto ids = [&] {
      auto longer = g.ids;
      const size_t most = g.model.starts_with("models/") ? 70 : 150;
      while (longer.size() < most) longer.push_back(longer[longer.size() * 7 % g.ids.size()]);
      return longer;
    }();
    Machine m = machine(kSource + "/" + g.model, {.context = 512}, profile(g));
    std::set<uint64_t> hashes;
    for (int chunk : {1, 7, 32, 512}) {
      ASSERT_TRUE(m.engine->set_chunk(chunk, chunk));
      hashes.insert(logits_hash(*m.engine, ids));
    }
    EXPECT_EQ(hashes.size(), 1u) << g.model << " " << g.profile;
  }
}

TEST(Bits, DoNotDependOnTheCompany) {
  for (const Golden& g : goldens()) {
    Machine m = machine(kSource + "/" + g.model, {.context = 128, .chunk = 24, .sequences = 4}, profile(g));
    ASSERT_TRUE(m.engine->set_chunk(24, 24));
    const auto vocab = static_cast<int32_t>(m.model->config.vocab);
    const Request request{.prompt = g.ids,
                          .max_tokens = 12,
                          .sampling = {.temperature = 0.9f, .seed = 11, .logprobs = true},
                          .logits_at = all_positions(g.ids)};
    Outcome alone, among;
    take(m.engine->submit(listen(request, alone)));
    run(*m.engine);

    std::vector<Outcome> strangers(3);
    for (uint32_t i = 0; i < 3; ++i) {
      take(m.engine->submit(listen({.prompt = some_ids(11 + 9 * static_cast<int>(i), vocab, i),
                                    .max_tokens = 20,
                                    .sampling = {.temperature = 1, .seed = i}},
                                   strangers[i])));
      if (i == 1) take(m.engine->submit(listen(request, among)));  // in the middle of the batch
    }
    run(*m.engine);
    EXPECT_EQ(among.logits.value(), alone.logits.value()) << g.model << " " << g.profile;
    EXPECT_EQ(among.tokens, alone.tokens);
    EXPECT_EQ(among.logprobs, alone.logprobs);
    EXPECT_TRUE(m.engine->check_idle());
  }
}

TEST(C52, ASeedGivesTheSameTokensAgain) {
  Machine m = machine(kDemo, {.context = 128});
  std::set<std::vector<int32_t>> texts;
  for (uint64_t seed : {1, 1, 2}) {
    Outcome got;
    take(m.engine->submit(listen({.prompt = some_ids(6, 8000),
                                  .max_tokens = 12,
                                  .sampling = {.temperature = 1, .top_k = 50, .top_p = 0.95f, .seed = seed}},
                                 got)));
    run(*m.engine);
    texts.insert(got.tokens);
  }
  EXPECT_EQ(texts.size(), 2u);
}

}  // namespace
}  // namespace juno::engine
