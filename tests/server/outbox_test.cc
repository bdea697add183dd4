// SPDX-License-Identifier: Apache-2.0
#include "server/net/outbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace juno::server {
namespace {

TEST(Outbox, WakesOnceForAllThatHappensUntilItIsLookedAt) {
  int woken = 0;
  Outbox box({}, {.wake = [&] { ++woken; }}, 100);
  box.start({});
  box.send("ab");
  box.send("cd");
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(box.pending(), 4u);
  const Outbox::Taken taken = box.take();
  EXPECT_TRUE(taken.head && taken.stream && !taken.ended);
  EXPECT_EQ(taken.bytes, "abcd");
  box.written(4);
  EXPECT_EQ(box.pending(), 0u);
  box.finish();
  EXPECT_EQ(woken, 2);
  EXPECT_TRUE(box.take().ended);
}

TEST(Outbox, OnlyTheFirstAnswerCounts) {
  Outbox box({}, {.wake = [] {}}, 100);
  box.send("before the start");
  box.reply({.status = 201});
  box.reply({.status = 500});
  box.start({});
  box.send("x");
  box.abort();
  const Outbox::Taken taken = box.take();
  EXPECT_EQ(taken.head->status, 201);
  EXPECT_TRUE(taken.ended && !taken.broken && !taken.stream);
  EXPECT_EQ(taken.bytes, "");
}

TEST(Outbox, TellsOnceThatTheClientLeftAndNeverAfterTheAnswer) {
  int told = 0;
  Outbox box({}, {.wake = [] {}}, 100);
  box.on_close([&] { ++told; });
  box.left();
  box.left();
  EXPECT_EQ(told, 1);
  box.on_close([&] { ++told; });  // at once
  EXPECT_EQ(told, 2);
  Outbox answered({}, {.wake = [] {}}, 100);
  answered.on_close([&] { ++told; });
  answered.reply({});
  answered.left();
  EXPECT_EQ(told, 2);
}

TEST(Outbox, WhatNobodyAnswersIsAFaultUnlessTheClientHasLeft) {
  for (const bool left : {false, true}) {
    const auto box = std::make_shared<Outbox>(HttpRequest{}, Hooks{.wake = [] {}}, 100);
    if (left) box->left();
    std::make_shared<Answer>(box).reset();
    const Outbox::Taken taken = box->take();
    EXPECT_EQ(taken.head ? taken.head->status : 0, left ? 0 : 500);
    EXPECT_TRUE(taken.ended);
    EXPECT_EQ(taken.broken, left);
  }
}

TEST(Outbox, AHandlerThatHoldsItsOwnExchangeIsLetGoWithTheAnswer) {
  const auto box = std::make_shared<Outbox>(HttpRequest{}, Hooks{.wake = [] {}}, 100);
  std::weak_ptr<Answer> weak;
  {
    const auto answer = std::make_shared<Answer>(box);
    weak = answer;
    answer->on_close([answer] {});
    answer->start({});
    answer->finish();
  }
  EXPECT_TRUE(weak.expired());
}

TEST(Outbox, LosesNothingThatSeveralThreadsSend) {
  std::atomic<int> woken{0};
  Outbox box({}, {.wake = [&] { ++woken; }}, 1 << 20);
  box.start({});
  std::vector<std::thread> senders;
  for (int t = 0; t < 4; ++t)
    senders.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) box.send("x");
    });
  size_t taken = 0;
  while (taken < 4000) {
    const size_t n = box.take().bytes.size();
    box.written(n);
    taken += n;
  }
  for (std::thread& t : senders) t.join();
  EXPECT_EQ(taken, 4000u);
  EXPECT_EQ(box.pending(), 0u);
}

}  // namespace
}  // namespace juno::server
