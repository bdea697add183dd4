// SPDX-License-Identifier: Apache-2.0
// Whole models through the GPU's kernels, run on this processor: the same logits and the same tokens as the
// reference, to the bit.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "backend/gpu/gpu_ops.h"
#include "backend/gpu/host/runtime.h"
#include "backend/gpu/open.h"
#include "engine/engine_fixture.h"
#include "engine/kv_pool.h"

namespace juno::gpu {
namespace {

using engine::Machine;
using engine::Outcome;
using ops::Activations;

// Every fixture whose architecture is in the list.
std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(engine::kSource + "/tests/data/archs")) {
    if (entry.path().extension() != ".gguf") continue;
    auto file = gguf::Reader::open(entry.path().string(), Log{});
    if (file && model::check_model(*file, 0, Log{})) names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Machine on_gpu(const std::string& path, const engine::EngineOptions& options, Activations profile = {}) {
  return engine::machine(path, options, take(open_host(profile)));
}

// What a prompt's logits and its greedy continuation are.
Outcome outcome(Machine& m, const std::vector<int32_t>& ids, int more) {
  Outcome outcome;
  engine::Request request{.prompt = ids, .max_tokens = more, .logits_at = {0, int64_t(ids.size()) - 1}};
  take(m.engine->submit(listen(std::move(request), outcome)));
  run(*m.engine);
  EXPECT_EQ(outcome.rows, 2);
  return outcome;
}

void expect_same(const Outcome& gpu, const Outcome& reference) {
  EXPECT_EQ(gpu.logits.value(), reference.logits.value());
  EXPECT_EQ(gpu.tokens, reference.tokens);
}

// `tokens` of a prompt in chunks, then two more, one by one.
void expect_same_bits(const std::string& name, int tokens, int chunk) {
  const std::string path = engine::fixture(name);
  const engine::EngineOptions options{.context = tokens + 8, .chunk = chunk};
  Machine gpu = on_gpu(path, options), reference = engine::machine(path, options);
  const auto ids = engine::some_ids(tokens, static_cast<int32_t>(gpu.model->config.vocab));
  expect_same(outcome(gpu, ids, 3), outcome(reference, ids, 3));
}

class GpuModel : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuModel, HasTheBitsOfTheReferenceInChunksAndTokenByToken) { expect_same_bits(GetParam(), 12, 9); }

TEST(GpuModels, AgreeBeyondAChunkOfAttention) { expect_same_bits("llama-untied-q8_0", 70, 24); }

TEST(GpuModels, AgreeBeyondAWindow) { expect_same_bits("gemma3-q8_0", 40, 36); }

// Planned for an H200, whose launches are other ones than this processor's.
TEST(GpuModels, AgreeWithTheLaunchesOfADevice) {
  const std::string path = engine::fixture("llama-untied-q8_0");
  const engine::EngineOptions options{.context = 300, .chunk = 64};
  Machine gpu = engine::machine(
      path, options, std::make_unique<GpuOps>("gpu-host", host::make_runtime(Chip{}), Activations::kInt8));
  Machine reference = engine::machine(path, options);
  for (const int tokens : {5, 280}) {
    const auto ids = engine::some_ids(tokens, static_cast<int32_t>(gpu.model->config.vocab));
    expect_same(outcome(gpu, ids, 4), outcome(reference, ids, 4));
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, GpuModel, ::testing::ValuesIn(models()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST(GpuModels, AgreeUnderInt8x2) {
  const std::string path = engine::fixture("gemma3-q8_0");
  const engine::EngineOptions options{.context = 64, .chunk = 12};
  Machine gpu = on_gpu(path, options, Activations::kInt8x2);
  Machine reference = engine::machine(path, options, Activations::kInt8x2);
  const auto ids = engine::some_ids(20, static_cast<int32_t>(gpu.model->config.vocab));
  expect_same(outcome(gpu, ids, 3), outcome(reference, ids, 3));
}

TEST(GpuModels, DecodeSeveralSequencesAtOnce) {
  const std::string path = engine::fixture("llama-untied-q8_0");
  const engine::EngineOptions options{.context = 48, .chunk = 12, .sequences = 3};
  Machine gpu = on_gpu(path, options), reference = engine::machine(path, options);
  const auto vocab = static_cast<int32_t>(gpu.model->config.vocab);
  for (Machine* m : {&gpu, &reference}) {
    std::vector<Outcome> outcomes(3);
    for (int i = 0; i < 3; ++i)
      take(m->engine->submit(
          listen({.prompt = engine::some_ids(5 + 7 * i, vocab, 3), .max_tokens = 6}, outcomes[i])));
    run(*m->engine);
    static std::vector<std::vector<int32_t>> first;
    for (int i = 0; i < 3; ++i) {
      if (m == &gpu) first.push_back(outcomes[i].tokens);
      else EXPECT_EQ(first[i], outcomes[i].tokens) << i;
    }
  }
}

// A pass of one token over one page of `layers`.
class OnePass {
 public:
  explicit OnePass(Machine& m) : m_(m), memory_(take(m.ops->device().allocate(sizeof kNumbers))) {
    m.ops->device().write(number(0, 3), kNumbers);
  }
  ~OnePass() { m_.ops->device().release(memory_); }

  void run(std::span<const ops::KvLayer> layers) {
    const int32_t page = 0;
    const ops::Run run{.rows = 1, .pages = {&page, 1}};
    const ops::Batch batch{.tokens = number(0),
                           .positions = number(1),
                           .outputs = number(2),
                           .runs = {&run, 1},
                           .layers = layers};
    m_.ops->run(batch, [&] { return model::forward(*m_.model->architecture, *m_.ops, batch); });
  }

 private:
  static constexpr int32_t kNumbers[] = {7, 0, 0};  // token, position, row that is wanted
  Tensor number(int at, int count = 1) {
    return {static_cast<int32_t*>(memory_) + at, DType::kI32, {.rows = 1, .cols = count}};
  }
  Machine& m_;
  void* const memory_;
};

TEST(GpuModels, FollowTheCacheWhenItLiesElsewhere) {
  Machine gpu = on_gpu(engine::fixture("llama-untied-q8_0"), {.context = 48, .chunk = 12});
  const model::Config& config = gpu.model->config;
  const std::vector<ops::KvShape> shapes(static_cast<size_t>(config.layers), config.kv_shape());
  const auto before = take(engine::KvPool::make(gpu.ops->device(), shapes, 1)),
             after = take(engine::KvPool::make(gpu.ops->device(), shapes, 1));
  std::vector<ops::KvLayer> layers(before->layers().begin(), before->layers().end());
  OnePass pass(gpu);
  for (int time = 0; time < 3; ++time) pass.run(layers);  // as launches, then as a graph
  std::ranges::copy(after->layers(), layers.begin());
  pass.run(layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    const ops::KvLayer &old = before->layers()[i], &now = after->layers()[i];
    const auto bytes = static_cast<size_t>(old.keys.shape.size()) * sizeof(uint16_t);
    EXPECT_EQ(std::memcmp(old.keys.data, now.keys.data, bytes), 0) << "keys of layer " << i;
  }
}

TEST(GpuModels, CountWhatAPassDoesTheFirstTimeAndLater) {
  const std::string path = engine::fixture("llama-untied-q8_0");
  const engine::EngineOptions options{.context = 48, .chunk = 12};
  Machine gpu = on_gpu(path, options), reference = engine::machine(path, options);
  const auto ids = engine::some_ids(9, static_cast<int32_t>(gpu.model->config.vocab));
  outcome(gpu, ids, 5);
  outcome(reference, ids, 5);
  const Snapshot a = gpu.ops->snapshot(), b = reference.ops->snapshot();
  for (size_t i = 0; i < a.ops.size(); ++i) {
    EXPECT_EQ(a.ops[i].calls, b.ops[i].calls) << a.ops[i].name;
    EXPECT_EQ(a.ops[i].weight_bytes, b.ops[i].weight_bytes) << a.ops[i].name;
    EXPECT_EQ(a.ops[i].moved_bytes, b.ops[i].moved_bytes) << a.ops[i].name;
  }
  EXPECT_GT(a.traffic.launches, 0u);
  EXPECT_GT(a.traffic.written, 0u);
  EXPECT_GT(a.traffic.read, 0u);
  EXPECT_EQ(a.traffic.failures, 0u);
}

}  // namespace
}  // namespace juno::gpu
