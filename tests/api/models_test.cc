// SPDX-License-Identifier: Apache-2.0
#include "api/models.h"

#include <filesystem>
#include <thread>

#include "api/service_check.h"

namespace juno::api {
namespace {

using namespace std::chrono_literals;
using State = ModelState::State;

NamedModel demo(const std::string& name, std::vector<std::string> aliases = {}) {
  return {.name = name,
          .aliases = std::move(aliases),
          .options = {.model_path = kDemo, .context = 512},
          .how = {.sequences = 2}};
}

std::unique_ptr<Models> two(const ModelsOptions& options = {}) {
  NamedModel small{.name = "small", .options = {.model_path = arch("llama-untied")}, .how = {.sequences = 1}};
  return take(Models::open({demo("demo", {"default", "gpt-4"}), small}, options));
}

TEST(Models, AreListedBeforeTheyAreLoaded) {
  const auto models = two();
  const auto list = models->list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "demo");
  EXPECT_EQ(list[0].aliases, (std::vector<std::string>{"default", "gpt-4"}));
  EXPECT_EQ(list[0].state, State::kUnloaded);
  EXPECT_EQ(list[0].context, 512);
  EXPECT_GT(list[0].created, 1'500'000'000);
  EXPECT_TRUE(list[0].chat);
  EXPECT_FALSE(list[0].embeddings);
  EXPECT_EQ(list[1].name, "small");
  EXPECT_TRUE(models->loaded().empty());
}

TEST(Models, AreLoadedWhenTheyAreFirstWanted) {
  const auto models = two();
  const auto service = take(models->get("gpt-4"));
  EXPECT_EQ(service, take(models->get("demo"))) << "an alias is the same model";
  EXPECT_EQ(models->list()[0].state, State::kLoaded);
  EXPECT_EQ(models->list()[1].state, State::kUnloaded);
  EXPECT_GT(models->list()[0].host_bytes, 24'000'000u);
  EXPECT_FALSE(run(*service, {.prompt = asked(*service, "Hi"), .max_tokens = 2})->wait().error);
  const auto small = take(models->get("small"));
  EXPECT_EQ(small->info().threads, service->info().threads) << "they share a pool";
  ASSERT_EQ(models->loaded().size(), 2u);
}

TEST(Models, AreLoadedOnceHoweverManyWantThem) {
  const auto models = two();
  std::vector<std::shared_ptr<Service>> services(6);
  std::vector<std::thread> threads;
  for (auto& s : services) threads.emplace_back([&] { s = take(models->get("demo")); });
  for (auto& t : threads) t.join();
  for (const auto& s : services) EXPECT_EQ(s, services[0]);
}

TEST(Models, WhoDoesNotWaitForALoadIsTold) {
  const auto models = two();
  std::atomic<int> busy = 0, loaded = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto got = models->get("demo", Models::Wait::kNot);
      if (got) return void(++loaded);
      EXPECT_EQ(got.error().code, Code::kBusy);
      EXPECT_NE(got.error().message.find("being loaded"), std::string::npos);
      ++busy;
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(busy + loaded, 4);
  EXPECT_GE(loaded, 1);
}

TEST(C64, ANameIsNeverAPath) {
  const auto models = two();
  for (const std::string& name :
       {kDemo, std::string("../models/juno-demo-23m.Q8_0.gguf"), std::string("/etc/passwd"),
        std::string("demo/../demo"), std::string("DEMO"), std::string(""), std::string("demo\0x", 6)}) {
    const auto got = models->get(name);
    ASSERT_FALSE(got) << name;
    EXPECT_EQ(got.error().code, Code::kNotFound);
    EXPECT_EQ(got.error().message.find("passwd"), std::string::npos) << "says nothing of files";
  }
}

TEST(Models, SayWhichNameStandsTwice) {
  for (auto list :
       {std::vector{demo("a"), demo("a")}, {demo("a"), demo("b", {"a"})}, {demo("a", {"x", "x"})}}) {
    const auto models = Models::open(std::move(list), {});
    ASSERT_FALSE(models);
    EXPECT_EQ(models.error().code, Code::kUsage);
  }
  EXPECT_FALSE(Models::open({demo("")}, {}));
  NamedModel missing = demo("missing");
  missing.options.model_path = "/no/such.gguf";
  const auto models = Models::open({missing}, {});
  ASSERT_FALSE(models);
  EXPECT_EQ(models.error().code, Code::kNoInput);
}

TEST(C49, AModelThatCannotFitIsRefusedWithBothNumbers) {
  const auto models = two({.memory = 30'000'000});
  const auto got = models->get("demo");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kDevice);
  EXPECT_NE(got.error().message.find(" 30000000 are free"), std::string::npos) << got.error().message;
  EXPECT_NE(got.error().message.find("needs "), std::string::npos);
  ASSERT_TRUE(models->list()[0].fault);
  EXPECT_EQ(models->list()[0].state, State::kUnloaded);
  EXPECT_TRUE(models->get("small")) << "another one fits";
}

TEST(Models, WhatNobodyUsesIsUnloaded) {
  const auto models = two({.idle = 50ms});
  const auto state = [&] { return models->list()[0].state; };
  {
    const auto held = take(models->get("demo"));
    std::this_thread::sleep_for(150ms);
    EXPECT_EQ(state(), State::kLoaded) << "it is held";
  }
  for (int i = 0; i < 2000 && state() != State::kUnloaded; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(state(), State::kUnloaded);
  EXPECT_TRUE(take(models->get("demo"))) << "and loaded again";
}

TEST(Models, TheirEndEndsRequestsAndTheHoldersMayOutliveThem) {
  auto models = two();
  auto service = take(models->get("demo"));
  Work work{.prompt = asked(*service, "Tell me a story."), .ignore_end = true};
  // As a server has it: the listener holds its model, and goes on the service's thread.
  struct Holder : Heard {
    std::shared_ptr<Service> service;
  };
  auto heard = std::make_shared<Holder>();
  heard->service = service;
  take(service->submit(work, heard));
  service.reset();
  models->stop();
  heard->wait();
  EXPECT_FALSE(models->get("demo"));
  models.reset();
  EXPECT_FALSE(heard->service->submit(work, heard));
}

}  // namespace
}  // namespace juno::api
