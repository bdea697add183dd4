// SPDX-License-Identifier: Apache-2.0
// The rules of the GPU that need a card which fails: a library that plays NVIDIA's driver is one. Its kernels
// are those of gpu/host, so that what does run gives real answers.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "api/bench.h"
#include "api/gate.h"
#include "api/open.h"
#include "api/placement.h"
#include "api/session.h"
#include "backend/gpu/cuda/image.h"
#include "backend/gpu/host/kernels.h"
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/launch.h"
#include "base/hash.h"
#include "base/sha256.h"

namespace juno::gpu::cuda {

// Instead of the kernels of this build: the stand-in takes any bytes for an image.
const KernelImage& kernel_image() {
  static constexpr uint8_t kBytes[] = {'s', 't', 'a', 'n', 'd', '-', 'i', 'n'};
  static constexpr uint32_t kSizes[] = {sizeof kBytes};
  static const std::string sum = [] {
    Sha256 hash;
    hash.add(kBytes);
    return hash.hex();
  }();
  static const KernelImage image{kBytes, kSizes, sum, "", ""};
  return image;
}

}  // namespace juno::gpu::cuda

// What the library asks for when a kernel is started.
extern "C" void juno_standin_launch(const char* kernel, const unsigned* grid, unsigned threads,
                                    unsigned shared, const void* args) {
  using namespace juno::gpu;
#define JUNO_SIZE(name, args, threads, blocks) sizeof(args),
  static constexpr size_t kSizes[] = {JUNO_KERNELS(JUNO_SIZE)};
#undef JUNO_SIZE
  const auto names = kernel_names();
  const auto found =
      std::ranges::find_if(names, [&](const char* name) { return std::strcmp(name, kernel) == 0; });
  const auto index = static_cast<size_t>(found - names.begin());
  Launch launch{.kernel = static_cast<int>(index),
                .grid = {grid[0], grid[1], grid[2]},
                .threads = threads,
                .shared = shared,
                .args_size = static_cast<uint32_t>(kSizes[index])};
  std::memcpy(launch.args, args, Launch::kMaxArgs);
  host::run(launch);
}

namespace juno::api {
namespace {

std::string arch(const std::string& name) {
  return std::string(JUNO_SOURCE_DIR) + "/tests/data/archs/" + name + ".gguf";
}
const std::string kModel = arch("llama-untied-q8_0");

struct Standin {
  void (*tell)(const char*);
  uint64_t (*held)();
  uint64_t (*most)();
  uint64_t (*graphs)();
};

const Standin& standin() {
  static const Standin found = [] {
    ::setenv("JUNO_CUDA_LIBRARY", JUNO_STANDIN_LIBRARY, 1);
    void* library = dlopen(JUNO_STANDIN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return Standin{reinterpret_cast<void (*)(const char*)>(dlsym(library, "juno_standin")),
                   reinterpret_cast<uint64_t (*)()>(dlsym(library, "juno_standin_held")),
                   reinterpret_cast<uint64_t (*)()>(dlsym(library, "juno_standin_most")),
                   reinterpret_cast<uint64_t (*)()>(dlsym(library, "juno_standin_graphs"))};
  }();
  return found;
}

// What is said besides errors.
struct Listener {
  std::vector<std::string> notices;
  Log log{[this](Level level, const std::string& text) {
    if (level == Level::kNotice) notices.push_back(text);
  }};
};

SessionOptions on(const std::string& backend, const Log& log = {}) {
  return {.model_path = kModel, .context = 128, .threads = 1, .backend = backend, .log = log};
}

std::string answer(Session& session) {
  const Reply reply = take(session.complete("Hello there, world", {.max_tokens = 6}, {}));
  Fnv1a hash;
  std::vector<int32_t> ids = {1, 5, 9, 3};
  take(session.logits(ids, {}, 0,
                      [&](int64_t, std::span<const float> row) { hash.add(row.data(), row.size_bytes()); }));
  std::string text = fmt::format("{:016x}", hash.value());
  for (int32_t id : reply.ids) text += fmt::format(" {}", id);
  return text;
}

class StandinTest : public testing::Test {
 protected:
  void SetUp() override { standin().tell(""); }
  void TearDown() override { ::setenv("JUNO_CUDA_LIBRARY", JUNO_STANDIN_LIBRARY, 1); }
};
using C47 = StandinTest;
using C48 = StandinTest;
using C49 = StandinTest;
using C50 = StandinTest;
using C52 = StandinTest;

void expect_refused(const std::string& why) {
  const auto asked = Session::open(on("cuda"));
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Code::kDevice) << "exit status 69";
  EXPECT_NE(asked.error().message.find(why), std::string::npos) << asked.error().message;
  Listener heard;
  const auto chosen = Session::open(on("auto", heard.log));
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ((*chosen)->info().backend, "cpu");
  ASSERT_EQ(heard.notices.size(), 1u) << "one line";
  EXPECT_NE(heard.notices[0].find(why), std::string::npos) << heard.notices[0];
  EXPECT_NE(heard.notices[0].find("CPU"), std::string::npos);
}

TEST_F(C47, WithoutADriverTheReasonIsGiven) {
  ::setenv("JUNO_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
  expect_refused("/nonexistent/libcuda.so.1");
}

TEST_F(C47, AnEmptyListOfDevicesIsAReason) {
  standin().tell("devices=0");
  expect_refused("no GPU");
}

TEST_F(C47, AGpuThatIsNotThereIsNamed) {
  const auto opened = Session::open(on("cuda:3"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kDevice);
  EXPECT_NE(opened.error().message.find("3"), std::string::npos);
}

TEST_F(C47, TooLittleMemoryIsRefusedBeforeLoadingOrSaid) {
  standin().tell("memory=1000000");
  const auto asked = Session::open(on("cuda"));
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Code::kDevice);
  EXPECT_NE(asked.error().message.find("are free"), std::string::npos) << asked.error().message;
  EXPECT_EQ(standin().held(), 0u);
  Listener heard;
  const auto chosen = Session::open(on("auto", heard.log));
  ASSERT_TRUE(chosen);
  EXPECT_EQ((*chosen)->info().backend, "cpu");
  EXPECT_EQ(heard.notices.size(), 1u);
}

TEST_F(C47, WhatRunsOnTheCardIsCounted) {
  const auto session = take(Session::open(on("cuda")));
  const Reply reply = take(session->complete("Hello", {.max_tokens = 4}, {}));
  EXPECT_GT(reply.stats.traffic.launches, 0u);
  EXPECT_GT(reply.stats.traffic.written, 0u);
  EXPECT_GT(reply.stats.traffic.read, 0u);
  EXPECT_EQ(reply.stats.traffic.failures, 0u);
  EXPECT_EQ(reply.stats.declined, 0u);
}

TEST_F(C48, ABuildForAnotherArchitectureIsRefusedAtOnce) {
  standin().tell("no-code");
  expect_refused("sm_90");
}

// What an executor takes for itself from its first kernel on: counters and room for a batch's numbers.
constexpr uint64_t kOfExecutor = 2 * (64 << 10);

// Every layer on the card or some, weights that are repacked and such that are not; several contexts.
TEST_F(C49, TheEstimateIsThePeak) {
  for (const char* name : {"llama-untied-q8_0", "qwen2-q8_0", "gemma3-f16"}) {
    const std::string model = arch(name);
    for (const int64_t context : {64, 4000}) {
      for (const char* layers : {"all", "1", "2"}) {
        standin().tell("");
        SessionOptions o = on("cuda");
        o.model_path = model;
        o.context = context;
        o.gpu_layers = layers;
        const Opened parts = open_parts(o);
        EXPECT_EQ(parts.stages.size(), std::string(layers) == "all" ? 1u : 2u);
        const Estimate& card = parts.estimates.back();
        const auto told = fmt::format("{}, {}, {}", model, context, layers);
        // The peak comes a little before: the weights of the first kernel are still there.
        EXPECT_NEAR(static_cast<double>(card.total() + kOfExecutor), static_cast<double>(standin().most()),
                    4096)
            << told;
        EXPECT_EQ(card.kept() + kOfExecutor, standin().held())
            << told << ": what uploading took was given back";
      }
    }
  }
}

TEST_F(C49, WhatCannotFitIsRefusedBeforeAnythingIsTaken) {
  uint64_t needed = 0;
  SessionOptions o = on("cuda");
  o.gpu_layers = "all";
  {
    const auto session = take(Session::open(o));
    needed = session->info().devices.back().estimate;
  }
  standin().tell(fmt::format("memory={}", needed + kCardSpare - 1).c_str());
  const auto refused = Session::open(o);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDevice);
  EXPECT_NE(refused.error().message.find(fmt::format("{}", needed)), std::string::npos)
      << refused.error().message;
  EXPECT_LT(standin().most(), uint64_t{1} << 20) << "nothing was taken but for the first kernel";
  standin().tell(fmt::format("memory={}", needed + kCardSpare + (uint64_t{1} << 20)).c_str());
  EXPECT_TRUE(Session::open(o));
}

TEST_F(C49, LayersThatDoNotFitStayOnTheCpuAndTheLineSaysWhich) {
  SessionOptions o = on("cuda");
  o.context = 4000;
  const auto whole = take(Session::open(o));
  const std::string expected = answer(*whole);
  const uint64_t needed = whole->info().devices.back().estimate;
  const uint64_t less = 50'000;  // than the weights of a layer
  standin().tell(
      fmt::format("memory={}", needed - less + kCardSpare + standin().held() + kOfExecutor).c_str());
  Listener heard;
  o.log = heard.log;
  const auto part = take(Session::open(o));
  ASSERT_EQ(part->info().devices.size(), 2u);
  EXPECT_EQ(part->info().devices[0].backend, "cpu");
  EXPECT_EQ(part->info().devices[1].backend, "cuda");
  ASSERT_EQ(heard.notices.size(), 1u);
  EXPECT_NE(heard.notices[0].find("layers 0 to"), std::string::npos) << heard.notices[0];
  EXPECT_EQ(answer(*part), expected) << "the same bits";
}

using Bench = StandinTest;

// A decode of 66 tokens: three layers, at the end with two pages.
TEST_F(Bench, TimesEachKernelOfTheLastPass) {
  standin().tell("memory=320000000");
  const std::vector<SessionOptions> models = {on("cuda")};
  const BenchOptions how{
      .prompts = {}, .decodes = {66}, .depths = {0}, .batches = {1}, .repetitions = 1, .kernels = true};
  const uint64_t graphs = standin().graphs();
  const nlohmann::ordered_json report = take(bench(models, how));
  const auto& kernels = report["models"][0]["tests"][0]["kernels"];
  double seconds = 0, share = 0;
  std::map<std::string, int> launches;
  std::map<std::string, uint64_t> bytes;
  for (const auto& row : kernels["rows"]) {
    const std::string name = row["kernel"];
    seconds += row["seconds"].get<double>();
    share += row["share"].get<double>();
    launches[name] += row["launches"].get<int>();
    if (!row["bytes"].is_null()) bytes[name] += row["bytes"].get<uint64_t>();
    EXPECT_GT(row["seconds_each"], 0) << name;
    EXPECT_LE(row["seconds"], kernels["rows"][0]["seconds"]) << "the longest first";
  }
  EXPECT_EQ(launches,
            (std::map<std::string, int>{
                {"embed", 1}, {"matvec_Q8_0_1", 13}, {"rope_table", 1}, {"attend_64_1", 3}, {"top", 1}}));
  EXPECT_EQ(kernels["launches"], 19);
  EXPECT_NEAR(kernels["seconds"].get<double>(), seconds, 1e-9);
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_GT(kernels["pass_seconds"], 0);
  EXPECT_EQ(bytes["attend_64_1"], 3u * 66 * 128) << "positions of 2 heads with keys and values of 16 halves";
  EXPECT_EQ(bytes["matvec_Q8_0_1"], 140'032u) << "what the file has of them";
  const uint64_t lengths = 2, times = 1 + 9;  // of a sequence, in powers of two pages; kernels are timed
  EXPECT_EQ(standin().graphs() - graphs, lengths + times) << "a graph serves all repetitions";
}

TEST_F(Bench, SaysThatTheCpuTimesNoKernels) {
  const std::vector<SessionOptions> models = {on("cpu")};
  const auto refused =
      bench(models,
            {.prompts = {1}, .decodes = {}, .depths = {0}, .batches = {}, .repetitions = 1, .kernels = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
  EXPECT_NE(refused.error().message.find("cpu"), std::string::npos) << refused.error().message;
}

using Split = StandinTest;

TEST_F(Split, SharesLayersOutAndChangesNoBit) {
  const std::string expected = answer(*take(Session::open(on("cpu"))));
  struct Case {
    std::vector<double> shares;
    std::vector<std::pair<int, int>> layers;
  };
  for (const Case& c : {Case{{1, 1}, {{0, 2}, {2, 3}}}, Case{{1, 5}, {{0, 1}, {1, 3}}},
                        Case{{0, 1}, {{0, 3}}}, Case{{1, 1, 1}, {{0, 1}, {1, 2}, {2, 3}}}}) {
    standin().tell("devices=3");
    SessionOptions o = on("cuda");
    o.gpu_split = c.shares;
    const auto session = take(Session::open(o));
    std::vector<std::pair<int, int>> layers;
    for (const Info::Device& d : session->info().devices) {
      EXPECT_EQ(d.backend, "cuda");
      layers.emplace_back(d.first, d.last);
    }
    EXPECT_EQ(layers, c.layers);
    EXPECT_EQ(answer(*session), expected) << "the same bits";
  }
}

TEST_F(Split, NamesTheCardThatIsMissing) {
  standin().tell("devices=1");
  SessionOptions o = on("cuda");
  o.gpu_split = {1, 1};
  const auto refused = Session::open(o);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDevice);
  EXPECT_NE(refused.error().message.find("there is no GPU 1"), std::string::npos) << refused.error().message;
  EXPECT_EQ(standin().held(), 0u);
  o.backend = "cuda:0";
  const auto one = Session::open(o);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, Code::kUsage);
}

TEST_F(C50, TheKthAllocationFailsAndTheNextSessionIsGood) {
  const auto cpu = take(Session::open(on("cpu")));
  const std::string expected = answer(*cpu);
  int failures = 0;
  for (int k = 1; k < 400; ++k) {
    standin().tell(fmt::format("allocation={}", k).c_str());
    const auto opened = Session::open(on("cuda"));
    if (!opened) {
      ++failures;
      EXPECT_EQ(opened.error().code, Code::kDevice) << opened.error().message;
      EXPECT_EQ(standin().held(), 0u) << "memory is back where it was";
      continue;
    }
    // It was loaded: from here on an allocation that fails is the request's.
    const Result<Reply> reply = (*opened)->complete("Hello there, world", {.max_tokens = 6}, {});
    if (reply) {
      standin().tell("");
      EXPECT_GT(failures, 5);
      EXPECT_EQ(answer(**opened), expected);
      return;
    }
    ++failures;
    EXPECT_EQ(reply.error().code, Code::kDevice) << reply.error().message;
    EXPECT_TRUE((*opened)->check_idle()) << "no page is lost";
    EXPECT_EQ(answer(**opened), expected) << "one good request after allocation " << k;
  }
  FAIL() << "allocations never ended";
}

TEST_F(C50, ALaunchThatFailsEndsTheRequestOnly) {
  const auto cpu = take(Session::open(on("cpu")));
  const std::string expected = answer(*cpu);
  const auto session = take(Session::open(on("cuda")));
  for (const int k : {1, 2, 7, 20, 33}) {
    standin().tell(fmt::format("launch={}", k).c_str());
    const auto reply = session->complete("Hello there, world", {.max_tokens = 6}, {});
    ASSERT_FALSE(reply) << k;
    EXPECT_EQ(reply.error().code, Code::kDevice);
    EXPECT_TRUE(session->check_idle());
    EXPECT_GT(session->counters().traffic.failures, 0u);
    EXPECT_EQ(answer(*session), expected) << "one good request after launch " << k;
  }
}

// One prompt alone and with 1, 6 and 31 neighbours, whole and in chunks, on both: ids and hashes.
TEST_F(C52, NeighboursChunksAndDevicesChangeNoBit) {
  const nlohmann::ordered_json report =
      take(gate({.model_path = kModel, .context = 128, .threads = 1},
                {.kind = "parity",
                 .arms = {"cpu", "cuda"},
                 .prompts = {"Hello there", "One two three four five six seven"},
                 .prompts_name = "here",
                 .max_tokens = 3}));
  ASSERT_EQ(report["status"], "passed") << report["why"];
  EXPECT_GT(report["arms"][1]["routing"]["launches"], 0);
  EXPECT_EQ(report["arms"][1]["device"]["name"], "Stand-in");
}

}  // namespace
}  // namespace juno::api
