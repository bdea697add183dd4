// SPDX-License-Identifier: Apache-2.0
// Faults that only a device would show otherwise: each is made on purpose, and the host finds it.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backend/gpu/host/memory.h"
#include "backend/gpu/host/runtime.h"
#include "backend/gpu/host/stream.h"
#include "backend/gpu/kernels/tiles.h"
#include "backend/gpu/plan.h"
#include "base/error.h"

namespace juno::gpu {
namespace {

using host::Body;
using host::Weather;

constexpr uint32_t kUnwritten = 0xffffffff, kGiven = 7, kChanged = 9;

struct Args {
  uint32_t* out = nullptr;
  const Quad32* from = nullptr;
};
const Args& args_of(const void* args) { return *static_cast<const Args*>(args); }

void run(Body body, const Args& args, uint32_t weather, uint32_t threads = 32) {
  host::Stream stream;
  stream.launch(body, make_launch(0, {}, threads, 64, args), Weather(weather));
  stream.finish();
}
std::string error_of(Body body, const Args& args, uint32_t weather = 0) {
  const Result<void> ran = guard([&] { run(body, args, weather); });
  return ran ? "" : ran.error().message;
}
testing::AssertionResult says(const std::string& error, const std::string& part) {
  if (error.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << error << "\" does not say \"" << part << "\"";
}

TEST(HostGpu, ShowsARaceOfThreadsByTheWeather) {
  const Body body = [](const void* args) {
    wait_dependency();
    *shared<int>() = thread();
    barrier();
    if (thread() == 0) *args_of(args).out = shared<uint32_t>()[0];
  };
  std::set<uint32_t> results;
  for (uint32_t weather = 0; weather < 12; ++weather) {
    uint32_t out = 0;
    run(body, {.out = &out}, weather, 128);
    results.insert(out);
  }
  EXPECT_GT(results.size(), 2u);
}

TEST(HostGpu, LetsAWarpRunAheadAsFarAsBarriersDo) {
  const Body body = [](const void* args) {
    wait_dependency();
    for (int i = 0; i < 4; ++i) {
      if (i == 3) barrier();
      if (lane() == 0) *args_of(args).out = *args_of(args).out * 10 + static_cast<uint32_t>(warp()) + 1;
      warp_barrier();
    }
  };
  uint32_t forward = 0, backward = 0;
  run(body, {.out = &forward}, 0, 64);
  run(body, {.out = &backward}, 1, 64);
  EXPECT_EQ(forward, 11122221u);
  EXPECT_EQ(backward, 22211112u);
}

TEST(HostGpu, RefusesToLetThreadsMeetAtDifferentPlaces) {
  const Body apart = [](const void*) {
    wait_dependency();
    if (lane() % 2 == 0) warp_barrier();
    else warp_barrier();
  };
  const Body without_one = [](const void*) {
    wait_dependency();
    if (lane() != 3) barrier();
  };
  EXPECT_TRUE(says(error_of(apart, {}), "different places"));
  EXPECT_TRUE(says(error_of(without_one, {}), "never come"));
}

// out: what is seen before the copy was waited for, after, and in a place written to in between.
TEST(HostGpu, LandsCopiesAtOnceOrAsLateAsTheyMay) {
  const Body body = [](const void* args) {
    wait_dependency();
    if (thread() != 0) return;
    auto* const to = shared<uint32_t>();
    copy_async16(to, args_of(args).from);
    copies_commit();
    args_of(args).out[0] = to[0];
    to[1] = kChanged;
    copies_wait<0>();
    args_of(args).out[1] = to[0];
    args_of(args).out[2] = to[1];
  };
  const Quad32 from{{kGiven, kGiven, kGiven, kGiven}};
  uint32_t early[3], late[3];
  run(body, {early, &from}, 0);
  run(body, {late, &from}, 2);
  EXPECT_EQ(early[0], kGiven);
  EXPECT_EQ(early[1], kGiven);
  EXPECT_EQ(early[2], kChanged);
  EXPECT_EQ(late[0], kUnwritten);
  EXPECT_EQ(late[1], kGiven);
  EXPECT_EQ(late[2], kGiven);
}

template <bool kWaits>
void fetch_and_look(const void* args) {
  auto& landed = *shared<Arrivals>();
  auto* const to = shared<uint32_t>(16);
  if (thread() == 0) landed.init(kFetchArrivals);
  wait_dependency();
  barrier();
  fetch_begin(landed, 16);
  fetch(landed, to, args_of(args).from, 16);
  fetch_end(landed);
  if (kWaits) landed.wait(0);
  if (thread() == 31) *args_of(args).out = to[0];
}
TEST(HostGpu, LandsFetchesWhenNothingElseIsLeftToDo) {
  const Quad32 from{{kGiven, kGiven, kGiven, kGiven}};
  for (const uint32_t weather : {0u, 1u, 2u, 3u}) {
    uint32_t out = 0;
    run(fetch_and_look<true>, {&out, &from}, weather);
    EXPECT_EQ(out, kGiven) << weather;
  }
  uint32_t out = 0;
  EXPECT_TRUE(says(error_of(fetch_and_look<false>, {&out, &from}, 2), "on their way"));
  EXPECT_EQ(out, kUnwritten);
}

// A second launch looks at what the first one writes.
template <bool kTooEarly>
void look(const void* args) {
  const Args& a = args_of(args);
  uint32_t seen = *a.out;
  wait_dependency();
  if (!kTooEarly) seen = *a.out;
  if (thread() == 0) a.out[1] = seen;
}
TEST(HostGpu, BeginsALaunchBeforeThoseThatItHasToWaitFor) {
  const Body write = [](const void* args) {
    wait_dependency();
    *args_of(args).out = kGiven;
  };
  const Body nothing = [](const void*) { wait_dependency(); };
  const auto seen_by = [&](Body second, bool apart) {
    uint32_t out[2] = {};
    const Launch launch = make_launch(0, {}, 32, 0, Args{.out = out});
    host::Stream stream;
    stream.launch(write, launch, Weather());
    if (apart) stream.launch(nothing, launch, Weather());
    stream.launch(second, launch, Weather());
    stream.finish();
    return out[1];
  };
  for (const bool apart : {false, true}) {
    EXPECT_EQ(seen_by(look<true>, apart), 0u);
    EXPECT_EQ(seen_by(look<false>, apart), kGiven);
  }
}

// Of the blocks that begin when all before them is done.
TEST(HostGpu, TakesAWaitThatIsOverForNoBarrier) {
  const Body body = [](const void* args) {
    if (thread() == 0) *shared<uint32_t>() = kGiven;
    wait_dependency();
    if (thread() == 127) args_of(args).out[block_x()] = *shared<uint32_t>();
  };
  constexpr uint32_t kBlocks = 8;
  std::set<uint32_t> results;
  for (uint32_t weather = 0; weather < 4; ++weather) {
    uint32_t out[kBlocks] = {};
    host::Stream stream;
    stream.launch(body, make_launch(0, {kBlocks}, 128, 64, Args{.out = out}), Weather(weather));
    stream.finish();
    results.insert(out[kBlocks - 1]);
  }
  EXPECT_EQ(results, (std::set<uint32_t>{kGiven, kUnwritten}));
}

TEST(HostGpu, RefusesAKernelThatDoesNotWaitForThoseBefore) {
  EXPECT_TRUE(says(error_of([](const void*) {}, {}), "never waits"));
}

TEST(HostGpu, PoisonsSharedMemoryAndNoticesWritesBehindIt) {
  const Body read = [](const void* args) {
    wait_dependency();
    *args_of(args).out = shared<uint32_t>()[5];
  };
  const Body write_behind = [](const void*) {
    wait_dependency();
    shared<uint32_t>()[16] = 1;
  };
  uint32_t out = 0;
  run(read, {.out = &out}, 0);
  EXPECT_EQ(out, kUnwritten);
  EXPECT_TRUE(says(error_of(write_behind, {}), "behind its 64 bytes"));
}

TEST(HostGpu, GivesMemoryOutPoisonedAndTheLastOneThatCameBackFirst) {
  host::Memory memory;
  auto* const first = static_cast<uint32_t*>(memory.take(512));
  auto* const second = static_cast<uint32_t*>(memory.take(512));
  EXPECT_EQ(*first, kUnwritten);
  *second = 1;
  memory.give_back(first);
  memory.give_back(second);
  EXPECT_EQ(memory.give_back(second), 0u);
  EXPECT_EQ(memory.take(512), second);
  EXPECT_EQ(*second, kUnwritten);
  EXPECT_EQ(memory.take(512), first);
}

TEST(HostGpu, NoticesWritesBehindAndAfter) {
  host::Memory memory;
  auto* const place = static_cast<unsigned char*>(memory.take(512));
  memory.check();
  place[512] = 0;
  const Result<void> behind = guard([&] { memory.check(); });
  ASSERT_FALSE(behind);
  EXPECT_TRUE(says(behind.error().message, "behind the end of 512 bytes"));
  place[512] = 0xff;
  memory.give_back(place);
  place[3] = 0;
  const Result<void> after = guard([&] { memory.take(512); });
  ASSERT_FALSE(after);
  EXPECT_TRUE(says(after.error().message, "written to after"));
}

TEST(HostGpu, RefusesALaunchThatNamesMemoryThatIsGone) {
  const auto runtime = host::make_runtime();
  auto* const flag = static_cast<uint32_t*>(take(runtime->allocate(4)));
  auto* const x = static_cast<float*>(take(runtime->allocate(4096)));
  const Launch launch = plan(FiniteArgs{.x = x, .flag = flag, .n = 1024});
  runtime->launch(launch);
  uint32_t found = 0;
  runtime->read(&found, flag, sizeof found);
  EXPECT_EQ(found, 1u) << "nothing was written to x";
  runtime->release(x);
  const Result<void> ran = guard([&] { runtime->launch(launch); });
  ASSERT_FALSE(ran);
  EXPECT_TRUE(says(ran.error().message, "finite is given memory that was given back"));
}

}  // namespace
}  // namespace juno::gpu
