// SPDX-License-Identifier: Apache-2.0
// A weight that is not finite ends the sequence with an error that says where; no token comes of it.
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <tuple>

#include "engine/engine_fixture.h"

namespace juno::engine {
namespace {

// A fixture in memory with some floats of one tensor replaced.
struct Poisoned {
  std::vector<uint64_t> bytes;
  ops::Reference ops;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<Engine> engine;

  Poisoned(const std::string& tensor, size_t first, float value) {
    std::ifstream in(fixture("llama-untied"), std::ios::binary);
    const std::string file((std::istreambuf_iterator<char>(in)), {});
    bytes.resize((file.size() + 7) / 8);
    std::memcpy(bytes.data(), file.data(), file.size());
    auto reader = take(gguf::Reader::open_memory(
        {reinterpret_cast<const uint8_t*>(bytes.data()), file.size()}, "poisoned.gguf", Log{}));
    const gguf::TensorInfo* info = reader.tensor(tensor);
    EXPECT_TRUE(info) << tensor;
    std::memcpy(const_cast<uint8_t*>(info->data) + first * sizeof value, &value, sizeof value);
    model =
        std::make_unique<model::Model>(take(model::load_model(std::move(reader), 128, ops.device(), Log{})));
    engine = take(Engine::make(*model, ops, {.context = 128, .chunk = 16, .sequences = 2, .vocab = 256}));
  }
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(NotFinite, TheErrorNamesTheLayerAndNoTokenIsProduced) {
  const std::tuple<const char*, float, const char*> cases[] = {{"blk.1.attn_norm.weight", kNan, "blk.1"},
                                                               {"blk.0.ffn_down.weight", kInf, "blk.0"},
                                                               {"output_norm.weight", kNan, "output_norm"},
                                                               {"output.weight", kNan, "output"}};
  for (const auto& [tensor, value, name] : cases) {
    Poisoned p(tensor, 3, value);
    Outcome got;
    take(p.engine->submit(listen({.prompt = some_ids(20, 200), .max_tokens = 5}, got)));
    run(*p.engine);
    ASSERT_EQ(got.finish->reason, FinishReason::kError) << tensor;
    EXPECT_NE(got.finish->error->message.find(name), std::string::npos) << got.finish->error->message;
    EXPECT_NE(got.finish->error->message.find("poisoned.gguf"), std::string::npos);
    EXPECT_EQ(got.finish->error->code, Code::kFailed);
    EXPECT_TRUE(got.tokens.empty());
    EXPECT_TRUE(p.engine->check_idle());
  }
}

TEST(NotFinite, OnlyTheSequenceThatMeetsItFails) {
  Poisoned p("token_embd.weight", 7 * 64 + 1, kNan);  // the row of token 7, if rows have 64 columns
  const int64_t dim = p.model->config.dim;
  const auto poisoned = static_cast<int32_t>((7 * 64 + 1) / dim);
  std::vector<int32_t> clean(20, poisoned + 1), bad = clean;
  bad[11] = poisoned;
  Outcome good_outcome, bad_outcome, alone;
  take(p.engine->submit(listen({.prompt = clean, .max_tokens = 1}, alone)));
  run(*p.engine);
  take(p.engine->submit(listen({.prompt = bad, .max_tokens = 5}, bad_outcome)));
  take(p.engine->submit(listen({.prompt = clean, .max_tokens = 1}, good_outcome)));
  run(*p.engine);
  EXPECT_EQ(bad_outcome.finish->reason, FinishReason::kError);
  EXPECT_NE(bad_outcome.finish->error->message.find("blk.0"), std::string::npos);
  EXPECT_EQ(good_outcome.finish->reason, FinishReason::kLength);
  EXPECT_EQ(good_outcome.tokens, alone.tokens);
}

}  // namespace
}  // namespace juno::engine
