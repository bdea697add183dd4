// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/kernels.h"

#include <algorithm>
#include <iterator>

#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/list.h"
#include "backend/gpu/kernels/matvec.h"
#include "backend/gpu/kernels/rows.h"
#include "base/error.h"

namespace juno::gpu::host {
namespace {

struct Entry {
  const char* name;
  Body body;
  uint32_t threads, args_size;
};

constexpr Entry kEntries[] = {
#define JUNO_ENTRY(name, Args, threads, blocks) \
  {#name, [](const void* args) { gpu::name(*static_cast<const Args*>(args)); }, threads, sizeof(Args)},
    JUNO_KERNELS(JUNO_ENTRY)
#undef JUNO_ENTRY
};

}  // namespace

void run(const Launch& launch, Order order) {
  if (launch.kernel < 0 || launch.kernel >= static_cast<int>(std::size(kEntries)))
    fail(Code::kDevice, "[gpu] there is no kernel {}", launch.kernel);
  const Entry& entry = kEntries[launch.kernel];
  if (launch.threads > entry.threads || launch.args_size != entry.args_size)
    fail(Code::kDevice, "[gpu] kernel {}: {} threads, {} bytes of arguments; it takes {} and {}", entry.name,
         launch.threads, launch.args_size, entry.threads, entry.args_size);
  run_grid(entry.body, launch, order);
}

}  // namespace juno::gpu::host
