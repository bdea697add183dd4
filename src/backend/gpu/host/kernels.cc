// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/kernels.h"

#include "backend/gpu/host/entries.h"
#include "base/error.h"

namespace juno::gpu::host {
namespace {

const Entry& entry_of(int kernel) {
  int before = 0;
  for (const auto family :
       {row_entries(), matvec_entries(), attention_entries(), prompt_entries(), many_32_entries(),
        many_long_entries(), many_short_entries(), many_broad_entries(), many_float_entries()}) {
    const int count = static_cast<int>(family.size());
    if (kernel >= before && kernel < before + count) return family[static_cast<size_t>(kernel - before)];
    before += count;
  }
  fail(Code::kDevice, "[backend/gpu] there is no kernel {}", kernel);
}

}  // namespace

void run(Stream& stream, const Launch& launch, const Weather& weather) {
  const Entry& entry = entry_of(launch.kernel);
  if (launch.threads > entry.threads || launch.args_size != entry.args_size)
    fail(Code::kDevice, "[backend/gpu] kernel {}: {} threads, {} bytes of arguments; it takes {} and {}",
         entry.name, launch.threads, launch.args_size, entry.threads, entry.args_size);
  stream.launch(entry.body, launch, weather);
}

void run(std::span<const Launch> launches, const Weather& weather) {
  Stream stream;
  for (const Launch& launch : launches) run(stream, launch, weather);
  stream.finish();
}

}  // namespace juno::gpu::host
