// SPDX-License-Identifier: Apache-2.0
// Whole models through the GPU's kernels, run on this processor: the same logits and the same tokens as the
// reference, to the bit.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>

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
void expect_same_bits(const std::string& name, int tokens, int chunk, Activations profile = {}) {
  const std::string path = engine::fixture(name);
  const engine::EngineOptions options{.context = tokens + 8, .chunk = chunk};
  Machine gpu = on_gpu(path, options, profile), reference = engine::machine(path, options, profile);
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

TEST(GpuModels, AgreeWhereAnExpertServesManyTokens) {
  expect_same_bits("qwen3moe", 50, 40);
  expect_same_bits("mixtral", 50, 40);
  expect_same_bits("granitemoe", 50, 40, Activations::kInt8x2);
}

// No room for tensor cores, and for attention of prompts only of short heads or not at all.
TEST(GpuModels, AgreeWhereBlocksHaveLittleSharedMemory) {
  for (const uint32_t shared : {160u << 10, 99u << 10}) {
    for (const char* name : {"llama-untied-q8_0", "gemma2"}) {
      const std::string path = engine::fixture(name);
      const engine::EngineOptions options{.context = 96, .chunk = 24};
      Chip chip = host::kChip;
      chip.shared_per_block = shared;
      Machine gpu = engine::machine(
          path, options, std::make_unique<GpuOps>("gpu-host", host::make_runtime(chip), Activations::kInt8));
      Machine reference = engine::machine(path, options);
      const auto ids = engine::some_ids(40, static_cast<int32_t>(gpu.model->config.vocab));
      expect_same(outcome(gpu, ids, 3), outcome(reference, ids, 3));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, GpuModel, ::testing::ValuesIn(models()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST(GpuModels, AgreeUnderInt8x2) { expect_same_bits("gemma3-q8_0", 20, 12, Activations::kInt8x2); }

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

// A request of each kind: what the greatest logits decide first, then what takes whole rows.
std::vector<engine::Request> requests_of_all_kinds(int32_t vocab) {
  using P = engine::SamplingParams;
  const P params[] = {{},
                      {.temperature = 0.7f, .top_k = 50, .top_p = 0.9f, .seed = 1},
                      {.temperature = 1.5f, .top_k = 128, .seed = 2},
                      {.temperature = 0.9f,
                       .top_k = 20,
                       .typical_p = 0.9f,
                       .min_p = 0.01f,
                       .repeat_penalty = 1.2f,
                       .repeat_last_n = 20,
                       .presence_penalty = 0.5f,
                       .logit_bias = {{7, -100.0f}, {9, -2.0f}},
                       .seed = 3},
                      {.temperature = 1, .top_k = 1, .seed = 4},
                      {.temperature = 2, .seed = 5},
                      {.temperature = 2, .top_k = 129, .seed = 6},
                      {.temperature = 1, .top_k = 9, .presence_penalty = -1, .seed = 7},
                      {.logprobs = true}};
  std::vector<engine::Request> requests;
  for (const P& p : params) {
    const int i = static_cast<int>(requests.size());
    requests.push_back({.prompt = engine::some_ids(3 + 5 * i, vocab, 3), .max_tokens = 7, .sampling = p});
  }
  requests[1].stop_ids = requests[4].stop_ids = {3, 4, 5};
  requests[1].ignore_end = true;
  requests[4].min_tokens = 3;
  return requests;
}

std::vector<Outcome> outcomes(Machine& m) {
  const auto requests = requests_of_all_kinds(static_cast<int32_t>(m.model->config.vocab));
  std::vector<Outcome> outcomes(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) take(m.engine->submit(listen(requests[i], outcomes[i])));
  run(*m.engine);
  return outcomes;
}

void expect_same_tokens(const engine::EngineOptions& options) {
  const std::string path = engine::fixture("llama-untied-q8_0");
  Machine gpu = on_gpu(path, options), reference = engine::machine(path, options);
  const auto got = outcomes(gpu), want = outcomes(reference);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].tokens, want[i].tokens) << i;
    EXPECT_EQ(got[i].logprobs, want[i].logprobs) << i;
  }
  std::map<std::string, uint64_t> whole;
  for (const Declined& d : gpu.ops->snapshot().declined) whole[std::string(d.reason)] += d.count;
  EXPECT_EQ(whole, (std::map<std::string, uint64_t>{
                       {"no top_k", 7}, {"a large top_k", 7}, {"a logit is raised", 7}, {"logprobs", 7}}));
  EXPECT_EQ(reference.ops->snapshot().declined_count(), 0u);
}

TEST(GpuModels, SampleTheTokensOfTheReferenceInMixedBatches) {
  expect_same_tokens({.context = 96, .chunk = 40, .sequences = 9});
}

TEST(GpuModels, SampleTheTokensOfTheReferenceWhileTheyCheckGuesses) {
  expect_same_tokens({.context = 96, .chunk = 60, .sequences = 9, .prompt_lookup = 3});
}

TEST(GpuModels, ReadOnlyTheLogitsThatDecideAToken) {
  Machine gpu = on_gpu(engine::fixture("llama-untied-q8_0"), {.context = 96, .chunk = 24});
  const auto vocab = static_cast<int32_t>(gpu.model->config.vocab);
  const auto read_for = [&](const engine::SamplingParams& params) {
    const uint64_t before = gpu.ops->snapshot().traffic.read;
    Outcome outcome;
    engine::Request request{.prompt = engine::some_ids(9, vocab), .max_tokens = 10, .sampling = params};
    request.keep = false;  // else a page of the first one's cache is copied for the next
    take(gpu.engine->submit(listen(std::move(request), outcome)));
    run(*gpu.engine);
    EXPECT_EQ(outcome.tokens.size(), 10u);
    return gpu.ops->snapshot().traffic.read - before;
  };
  EXPECT_EQ(read_for({}), 10u * 8);
  EXPECT_EQ(read_for({.temperature = 0.7f, .top_k = 50, .top_p = 0.9f}), 10u * 50 * 8);
  EXPECT_EQ(gpu.ops->snapshot().declined_count(), 0u);
  EXPECT_EQ(read_for({.temperature = 0.7f}), 10u * static_cast<uint64_t>(vocab) * 4);
  EXPECT_EQ(gpu.ops->snapshot().declined_count(), 10u);
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
