// SPDX-License-Identifier: Apache-2.0
// What a GPU is told to do in a whole pass, by a runtime that notes it and does nothing.
#include <map>

#include "backend/gpu/cuda/image.h"
#include "backend/gpu/gpu_ops.h"
#include "base/sha256.h"
#include "engine/engine_fixture.h"
#include "quant/formats.h"

namespace juno::gpu {
namespace {

using Names = std::vector<std::string>;

struct Noted {
  std::vector<Names> passes;  // each ends with the greatest logits
  int replays = 0, captures = 0, writes = 0;
  std::vector<uint64_t> passing;  // bytes of the last pass's launches that the L2 cache need not keep
  bool sane = true;
};

class NotingGraph final : public Graph {};

class NotingRuntime final : public Runtime {
 public:
  NotingRuntime(Noted& noted, const Chip& chip) : noted_(noted) { chip_ = chip; }
  bool on_host() const override { return true; }
  ops::CardMemory memory() const override { return {}; }
  Result<void*> allocate(size_t bytes) override { return std::calloc(1, allocation_bytes(bytes)); }
  void release(void* memory) override { std::free(memory); }
  void write(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    ++noted_.writes;
  }
  void read(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void wait() override {}
  void launch(const Launch& l) override {
    const auto index = static_cast<size_t>(l.kernel);
    noted_.sane &= index < kernel_names().size() && l.grid.count() > 0 && l.threads % 32 == 0 &&
                   l.threads <= static_cast<uint32_t>(kernel_threads()[index]) &&
                   l.shared <= chip_.shared_per_block && l.grid.y < 65536 && l.grid.z < 65536;
    if (noted_.passes.empty() || noted_.passes.back().back() == "top") {
      noted_.passes.emplace_back();
      noted_.passing.clear();
    }
    if (l.passing.bytes > 0) noted_.passing.push_back(l.passing.bytes);
    noted_.passes.back().push_back(std::string(kernel_names()[index]).substr(5));
  }
  std::unique_ptr<Graph> capture(std::span<const Launch>) override {
    ++noted_.captures;
    return std::make_unique<NotingGraph>();
  }
  void replay(Graph&) override { ++noted_.replays; }
  std::vector<double> time_each(std::span<const Launch>) override { return {}; }

 private:
  Noted& noted_;
};

void generate(const std::string& model, Noted& noted, int prompt, int more, const Chip& chip = {}) {
  engine::Machine m =
      engine::machine(engine::fixture(model), {.context = 96, .chunk = 24},
                      std::make_unique<GpuOps>("noting", std::make_unique<NotingRuntime>(noted, chip),
                                               ops::Activations::kInt8));
  engine::Outcome outcome;
  take(m.engine->submit(listen({.prompt = engine::some_ids(prompt, 100), .max_tokens = more}, outcome)));
  run(*m.engine);
  EXPECT_EQ(outcome.tokens.size(), static_cast<size_t>(more));
  EXPECT_TRUE(noted.sane);
}

TEST(Launches, OfADecodedTokenAreFiveALayer) {
  Noted noted;
  generate("llama-untied-q8_0", noted, 3, 6);
  const Names product{"matvec_Q8_0_1"}, attention{"attend_64_1"};
  Names expected{"embed"};
  const auto then = [&](const Names& names) { expected.insert(expected.end(), names.begin(), names.end()); };
  for (int layer = 0; layer < 3; ++layer)
    for (const Names* names : {&product, &attention, &product, &product, &product}) then(*names);
  then(product);
  then({"top"});
  ASSERT_EQ(noted.passes.size(), 2u) << "the prompt and the first token; the others replay";
  Names decode = noted.passes[1];
  EXPECT_EQ(std::erase(decode, "rope_table"), 1u);
  EXPECT_EQ(noted.passing.size(), 3u * 4 + 1) << "the weights of each product";
  EXPECT_EQ(decode, expected);
}

TEST(Launches, OfAShapeThatIsKnownAreOneGraphAndOneCopy) {
  Noted before, after;
  generate("llama-untied-q8_0", before, 3, 10);
  generate("llama-untied-q8_0", after, 3, 20);
  EXPECT_EQ(before.captures, 1);
  EXPECT_EQ(before.replays, 8) << "all but the prompt and the first token";
  EXPECT_EQ(after.passes.size(), before.passes.size());
  EXPECT_EQ(after.replays, 18);
  EXPECT_EQ(after.writes - before.writes, 10) << "the batch; where its pages are is known";
}

// Looking at layers leaves something where the numbers of a pass lie.
TEST(Launches, AreHandedTheirNumbersAnewAfterLayersWereLookedAt) {
  Noted noted;
  engine::Machine m =
      engine::machine(engine::fixture("llama-untied-q8_0"), {.context = 96, .chunk = 24},
                      std::make_unique<GpuOps>("noting", std::make_unique<NotingRuntime>(noted, Chip{}),
                                               ops::Activations::kInt8));
  engine::Outcome outcome;
  take(m.engine->submit(listen({.prompt = engine::some_ids(3, 100), .max_tokens = 12}, outcome)));
  const auto writes = [&] {
    const int before = noted.writes;
    EXPECT_TRUE(take(m.engine->step()));
    return noted.writes - before;
  };
  for (int i = 0; i < 4; ++i) writes();
  EXPECT_EQ(writes(), 1);
  m.ops->check_layers(true);
  writes();
  m.ops->check_layers(false);
  EXPECT_EQ(writes(), 2);
  EXPECT_EQ(writes(), 1);
}

TEST(Launches, AreSaneForEveryKindOfModelAndPrompt) {
  for (const char* model : {"gemma3", "qwen3moe", "phi3-longrope", "granite", "olmo2"}) {
    SCOPED_TRACE(model);
    Noted noted;
    generate(model, noted, 70, 5);
  }
}

TEST(Launches, OfAPromptWithFloatWeightsServeManyTokensAtOnce) {
  Noted noted;
  generate("llama-untied-f16", noted, 20, 3);
  ASSERT_EQ(noted.passes.size(), 2u);
  EXPECT_EQ(std::ranges::count(noted.passes[0], "many_F16"), 3 * 4) << "qkv, output, gate with up, down";
  EXPECT_EQ(std::ranges::count(noted.passes[1], "many_F16"), 0) << "one token";
}

TEST(Launches, OfAPromptSortItsTokensByExpert) {
  for (const char* model : {"qwen3moe", "mixtral"}) {
    Noted noted;
    generate(model, noted, 20, 3);
    ASSERT_EQ(noted.passes.size(), 2u);
    const auto layers = std::ranges::count(noted.passes[0], "combine");
    EXPECT_GT(layers, 0);
    EXPECT_EQ(std::ranges::count(noted.passes[0], "group"), layers) << model;
    EXPECT_EQ(std::ranges::count(noted.passes[1], "group"), 0) << "one token";
  }
}

TEST(Launches, OfExpertsRefuseAGateThatIsUnlikeUp) {
  std::vector<float> numbers(1);
  const auto of = [&](uint32_t format, Shape shape) {
    return Tensor{numbers.data(), static_cast<DType>(format), shape};
  };
  const auto f32 = [&](int64_t rows, int64_t cols) { return of(0, {.rows = rows, .cols = cols}); };
  const Tensor ids{numbers.data(), DType::kI32, {.rows = 1, .cols = 2}};
  for (const auto& [up, name] : {std::pair{quant::Q8_0::gguf_id, "Q8_0"}, {quant::Q6_K::gguf_id, "Q6_K"}}) {
    const ExpertsStep step{.y = f32(1, 256),
                           .x = f32(1, 256),
                           .w = {of(quant::Q4_K::gguf_id, {4, 256, 256}), of(up, {4, 256, 256}),
                                 of(quant::Q8_0::gguf_id, {4, 256, 256})},
                           .routes = {.ids = ids, .weights = f32(1, 2)},
                           .scratch = reinterpret_cast<std::byte*>(numbers.data())};
    const auto refused = guard([&] { return lower({step}, {}).workspace; });
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().message.find(fmt::format("gate is in Q4_K and up in {}", name)),
              std::string::npos)
        << refused.error().message;
  }
}

// Of an A100, and of cards for a desk.
constexpr uint32_t kLittleShared[] = {160 << 10, 99 << 10};

TEST(Launches, TakeNoMoreSharedMemoryThanABlockHas) {
  for (const uint32_t shared : kLittleShared) {
    for (const char* model : {"llama-untied-q8_0", "gemma3", "gemma2", "qwen3moe", "mistral-headdim"}) {
      SCOPED_TRACE(fmt::format("{} with {} bytes", model, shared));
      Noted noted;
      generate(model, noted, 70, 5, {.shared_per_block = shared});
    }
  }
}

// The rows that the largest models' last products read.
TEST(Launches, RoundLongRowsInPiecesThatHaveRoom) {
  std::vector<float> numbers(1);
  for (const uint32_t shared : kLittleShared) {
    for (const int64_t k : {28672, 57344}) {
      const Tensor x{numbers.data(), DType::kF32, {.rows = 40, .cols = k}},
          y{numbers.data(), DType::kF32, {.rows = 40, .cols = 64}},
          weight{numbers.data(), static_cast<DType>(quant::Q8_0::gguf_id), {.rows = 64, .cols = k}};
      LinearStep linear{.x = x};
      linear.parts.push_back({y, {.weight = weight}});
      const Lowered lowered = lower({linear}, {.chip = {.shared_per_block = shared}});
      EXPECT_GT(lowered.launches.size(), 1u);
      for (const Launch& launch : lowered.launches) EXPECT_LE(launch.shared, shared) << k;
    }
  }
}

TEST(Launches, ThatHaveNoRoomAreRefusedByName) {
  std::vector<float> numbers(1);
  const int64_t k = 1 << 15;
  const Tensor x{numbers.data(), DType::kF32, {.rows = 1, .cols = k}};
  const NormStep norm{x, x, {.weight = x}};
  const auto refused =
      guard([&] { return lower({norm}, {.chip = {.shared_per_block = 99 << 10}}).workspace; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDevice);
  EXPECT_NE(refused.error().message.find("norm takes 132096 bytes"), std::string::npos)
      << refused.error().message;
}

TEST(CudaImage, HasTheBytesThatTheBuildSaw) {
  const cuda::KernelImage& image = cuda::kernel_image();
  if (!image.missing.empty()) GTEST_SKIP() << image.missing;
  Sha256 sum;
  sum.add(image.bytes);
  EXPECT_EQ(sum.hex(), image.sha256);
  size_t bytes = 0;
  for (uint32_t size : image.sizes) bytes += size;
  EXPECT_EQ(bytes, image.bytes.size());
}

}  // namespace
}  // namespace juno::gpu
