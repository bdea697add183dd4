// SPDX-License-Identifier: Apache-2.0
// An allocation that fails, each one in turn, while a request is taken in, runs and ends.
#include <cstdlib>
#include <new>

#include "api/service_check.h"

namespace {

std::atomic<int64_t> before_failure{0};  // allocations; 0: none fails

void* allocate(size_t size) {
  if (before_failure.load(std::memory_order_relaxed) > 0 && before_failure.fetch_sub(1) == 1)
    throw std::bad_alloc();
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace juno::api {
namespace {

TEST(C50, AnAllocationThatFailsEndsItsRequestAndNothingElse) {
  const auto service = open_service({.sequences = 4});
  Work work{.prompt = asked(*service, "Who are you?"), .choices = 2, .max_tokens = 3, .stop = {"zebra"}};
  const HeardChoice expected = run(*service, work)->choice();
  int refused = 0, ended = 0;
  bool failed = true;
  for (int64_t k = 1; failed; ++k) {
    ASSERT_LT(k, 20000);
    Work copy = work;
    auto heard = std::make_shared<Heard>();
    before_failure = k;
    const auto ticket = service->submit(std::move(copy), heard);
    std::optional<Error> error;
    if (ticket) {
      heard->wait_for_end();
      failed = before_failure.exchange(0) == 0;
      error = heard->wait().error;
      ended += error.has_value();
    } else {
      failed = before_failure.exchange(0) == 0;
      error = ticket.error();
      ++refused;
    }
    if (error) EXPECT_EQ(error->code, Code::kBusy) << k << ": " << error->message;
    if (!failed) EXPECT_FALSE(error);
    if (k % 16 != 0 && failed) continue;
    const auto after = run(*service, work);
    EXPECT_FALSE(after->wait().error) << k;
    EXPECT_EQ(after->choice().ids, expected.ids) << k;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(ended, 0);
  const Load load = service->load();
  EXPECT_EQ(load.waiting + load.running, 0);
  EXPECT_EQ(load.pages_used, 0);
}

}  // namespace
}  // namespace juno::api
