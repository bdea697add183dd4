// SPDX-License-Identifier: Apache-2.0
// The kernels' bodies for the host, a table a family, in the order of kernels/list.h. The families compile
// side by side.
#pragma once
#include <span>

#include "backend/gpu/host/block.h"
#include "backend/gpu/kernels/args.h"
#include "backend/gpu/kernels/list.h"

namespace juno::gpu::host {

struct Entry {
  const char* name;
  Body body;
  uint32_t threads, args_size;
};

#define JUNO_ENTRY(name, Args, threads, blocks) \
  {#name, [](const void* args) { gpu::name(*static_cast<const Args*>(args)); }, threads, sizeof(Args)},

std::span<const Entry> row_entries();
std::span<const Entry> matvec_entries();
std::span<const Entry> attention_entries();
std::span<const Entry> prompt_entries();
std::span<const Entry> many_32_entries();
std::span<const Entry> many_long_entries();
std::span<const Entry> many_short_entries();
std::span<const Entry> many_broad_entries();
std::span<const Entry> many_float_entries();

}  // namespace juno::gpu::host
