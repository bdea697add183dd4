// SPDX-License-Identifier: Apache-2.0
// Acceptance: the decode loop allocates nothing. Counts malloc itself, so operator new and C code alike.
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "backend/backends.h"
#include "engine/engine_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define JUNO_COUNTS_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define JUNO_COUNTS_MALLOC 0
#endif
#endif
#ifndef JUNO_COUNTS_MALLOC
#define JUNO_COUNTS_MALLOC 1
#endif

namespace {
std::atomic<long> allocations{0};
}

#if JUNO_COUNTS_MALLOC
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  ++allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
}
#endif

namespace juno::engine {
namespace {

// Everything the sampler can do is switched on.
const SamplingParams kBusy{.temperature = 0.9f,
                           .top_k = 600,
                           .typical_p = 0.97f,
                           .top_p = 0.95f,
                           .min_p = 0.01f,
                           .repeat_penalty = 1.1f,
                           .presence_penalty = 0.1f,
                           .frequency_penalty = 0.1f,
                           .logit_bias = {{3, -1.0f}},
                           .seed = 3,
                           .logprobs = true};

void expect_none(const std::string& path, std::unique_ptr<ops::Executor> ops) {
  const std::string name = fmt::format("{} on {} {}", path, ops->backend(), ops->isa());
  Machine m = machine(path, {.context = 200, .sequences = 3}, std::move(ops));
  int done = 0, tokens = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    Request request{
        .prompt = some_ids(50, 200, i), .max_tokens = 30, .sampling = i == 0 ? SamplingParams{} : kBusy};
    request.on_token = [&](const Token&) { return ++tokens > 0; };
    request.on_finish = [&](Finish&) { ++done; };
    take(m.engine->submit(std::move(request)));
  }
  while (tokens < 3)
    ASSERT_TRUE(*m.engine->step());  // all are past their prompts: pages of 64 positions are crossed below
  const int start = tokens;
  long made = 0;
  for (long before = allocations; *m.engine->step() && done == 0; before = allocations)
    made += allocations - before;  // but for the step that leaves a sequence to the cache
  EXPECT_EQ(made, 0) << name;
  EXPECT_GT(tokens - start, 60) << name << ": tokens were made meanwhile";
}

TEST(Allocation, TheDecodeLoopAllocatesNothing) {
  if (!JUNO_COUNTS_MALLOC) GTEST_SKIP() << "a sanitizer owns malloc";
  ASSERT_TRUE([] {
    const long before = allocations;
    delete new std::string(100, 'x');
    return allocations > before;
  }()) << "the counter counts";
  for (const std::string& path : {fixture("llama-untied"), fixture("qwen3moe"), kDemo}) {
    for (const char* backend : {"reference", "cpu"})
      expect_none(path, take(open_backend(backend, {.threads = 2})));
  }
}

}  // namespace
}  // namespace juno::engine
