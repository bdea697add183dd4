// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/launch.h"

#include "backend/gpu/kernels/list.h"

namespace juno::gpu {
namespace {

constexpr const char* kNames[] = {
#define JUNO_KERNEL_NAME(name, args, threads, blocks) "juno_" #name,
    JUNO_KERNELS(JUNO_KERNEL_NAME)
#undef JUNO_KERNEL_NAME
};

constexpr int kThreads[] = {
#define JUNO_KERNEL_THREADS(name, args, threads, blocks) threads,
    JUNO_KERNELS(JUNO_KERNEL_THREADS)
#undef JUNO_KERNEL_THREADS
};

}  // namespace

std::span<const char* const> kernel_names() { return kNames; }
std::span<const int> kernel_threads() { return kThreads; }

}  // namespace juno::gpu
