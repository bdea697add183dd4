// SPDX-License-Identifier: Apache-2.0
#include "base/recorder.h"

#include <gtest/gtest.h>

namespace juno {
namespace {

constexpr std::string_view kNames[] = {"linear", "norm"};

TEST(Recorder, TellsWhatHappenedBetweenTwoSnapshots) {
  Recorder recorder(kNames);
  recorder.count(0, 100, 10);
  const Snapshot before = recorder.snapshot();
  recorder.count(0, 7, 3);
  recorder.failed(1);
  const Snapshot between = recorder.snapshot().since(before);
  EXPECT_EQ(between.ops[0].name, "linear");
  EXPECT_EQ(between.ops[0].calls, 1u);
  EXPECT_EQ(between.ops[0].weight_bytes, 7u);
  EXPECT_EQ(between.ops[0].moved_bytes, 3u);
  EXPECT_EQ(between.failures(), 1u);
  EXPECT_EQ(recorder.snapshot().weight_bytes(), 107u);
}

TEST(Recorder, CountsEqualDeclinedEventsTogetherAndLosesNone) {
  Recorder recorder(kNames);
  const Declined event{
      .op = "linear", .type = "Q4_1", .stage = "decode", .reason = "no kernel", .shape = {1, 2, 3}};
  recorder.declined(event);
  const Snapshot before = recorder.snapshot();
  recorder.declined(event);
  for (int i = 0; i < 2 * Recorder::kMaxDeclined; ++i) {
    Declined other = event;
    other.shape[0] = 10 + i;
    recorder.declined(other);
  }
  const Snapshot between = recorder.snapshot().since(before);
  EXPECT_EQ(between.declined.front().count, 1u);
  EXPECT_EQ(between.declined_count(), 1u + 2 * Recorder::kMaxDeclined);
}

TEST(Recorder, MeasuresTimeOnlyWhenAsked) {
  Recorder recorder(kNames);
  { const Recorder::Timer timer(recorder, 0); }
  EXPECT_EQ(recorder.snapshot().ops[0].nanoseconds, 0u);
  recorder.set_timing(true);
  while (recorder.snapshot().ops[0].nanoseconds == 0) const Recorder::Timer timer(recorder, 0);
}

}  // namespace
}  // namespace juno
