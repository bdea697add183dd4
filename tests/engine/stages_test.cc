// SPDX-License-Identifier: Apache-2.0
// Layers on several devices give the bits of one device, wherever the border lies.
#include <fmt/ranges.h>

#include <filesystem>

#include "backend/backends.h"
#include "engine/engine_fixture.h"
#include "model/architecture.h"

namespace juno::engine {
namespace {

struct Spread {
  std::unique_ptr<ops::Executor> front, back;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<Engine> engine;
};

// The first `border` layers on one backend, the others on another.
Spread spread(const std::string& path, int border, const char* front, const char* back) {
  Spread s{take(open_backend(front, {.threads = 1})), take(open_backend(back, {.threads = 1})), {}, {}};
  gguf::Reader file = take(gguf::Reader::open(path, Log{}));
  const int layers = take(model::check_model(file, 200, Log{})).layers;
  std::vector<ops::Device*> devices(static_cast<size_t>(border), &s.front->device());
  devices.resize(static_cast<size_t>(layers), &s.back->device());
  s.model = std::make_unique<model::Model>(take(model::load_model(std::move(file), 200, devices, Log{})));
  s.engine = take(Engine::make(
      *s.model, std::vector<model::Stage>{{s.front.get(), 0, border}, {s.back.get(), border, layers}},
      {.context = 200, .chunk = 48, .sequences = 2, .vocab = static_cast<int32_t>(s.model->config.vocab)}));
  return s;
}

// Two requests that share their steps: a prompt of two pages whose logits are all wanted, and a short one.
std::string said(Engine& engine, int32_t vocab) {
  Outcome outcomes[2];
  take(engine.set_chunk(48, 48));
  Request first{.prompt = some_ids(70, vocab), .max_tokens = 6};
  for (int64_t p = 0; p < 70; ++p) first.logits_at.push_back(p);
  Request second{.prompt = some_ids(9, vocab, 2), .max_tokens = 8, .logits_at = {8}};
  take(engine.submit(listen(std::move(first), outcomes[0])));
  take(engine.submit(listen(std::move(second), outcomes[1])));
  run(engine);
  std::string all;
  for (const Outcome& o : outcomes)
    all += fmt::format("{} rows {:016x}, tokens {}; ", o.rows, o.logits.value(), fmt::join(o.tokens, " "));
  return all;
}

std::vector<std::string> fixtures() {
  std::vector<std::string> paths = {kDemo};
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/tests/data/archs")) {
    if (entry.path().extension() != ".gguf") continue;
    const gguf::Reader file = take(gguf::Reader::open(entry.path().string(), Log{}));
    const std::string name = file.metadata().find("general.architecture")->as<std::string>().value();
    for (const model::Entry& known : model::architectures())
      if (known.name == name) paths.push_back(entry.path().string());
  }
  return paths;
}

TEST(Stages, EveryBorderOfEveryArchitectureGivesTheBitsOfOneDevice) {
  const std::vector<std::string> paths = fixtures();
  ASSERT_GT(paths.size(), 10u);
  for (const std::string& path : paths) {
    Machine one = machine(path, {.context = 200, .chunk = 48, .sequences = 2});
    const auto vocab = static_cast<int32_t>(one.model->config.vocab);
    const std::string expected = said(*one.engine, vocab);
    const int layers = one.model->config.layers;
    for (int border = 1; border < layers; ++border) {
      Spread s =
          border % 2 ? spread(path, border, "cpu", "reference") : spread(path, border, "reference", "cpu");
      EXPECT_EQ(said(*s.engine, vocab), expected) << path << ", border " << border;
      EXPECT_TRUE(s.engine->check_idle());
    }
  }
}

TEST(Stages, EachDeviceHoldsTheCacheAndTheNormsOfItsLayers) {
  Spread s = spread(fixture("llama-untied"), 1, "cpu", "reference");
  EXPECT_GT(s.front->device().held(), 0u);
  EXPECT_GT(s.back->device().held(), 0u);
  const uint64_t front = s.front->device().held(), back = s.back->device().held();
  s.engine.reset();
  EXPECT_LT(s.front->device().held(), front);
  EXPECT_LT(s.back->device().held(), back);
}

}  // namespace
}  // namespace juno::engine
