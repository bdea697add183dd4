// SPDX-License-Identifier: Apache-2.0
// Every backend this program knows (backends.cc is the list), and the one way to open one.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/thread_pool.h"
#include "ops/executor.h"

namespace juno {

struct BackendOptions {
  int threads = 0;  // 0: as many as the process may use
  std::string isa;  // instruction set of the CPU backend; empty: the fastest
  int device = 0;   // which of several alike
  ops::Activations activations = ops::Activations::kInt8;
  std::shared_ptr<ThreadPool> pool;  // the CPU's, if several models share one
  bool turn_weights = true;          // see cpu::CpuOptions
  Log log;
};

struct Backend {
  std::string_view name;
  bool card = false;  // has memory of its own: what "auto" tries, and what layers can be given to
  // Null: the name is known, but its code is not built into this program.
  Result<std::unique_ptr<ops::Executor>> (*open)(const BackendOptions& options);
  // SHA-256 of the kernels that are built in, "" for none; null where there is nothing to name.
  std::string_view (*kernels)();
};

std::span<const Backend> backends();

// name: of the list, or "cuda:1" for another device than the first. Fails with Code::kDevice when the backend
// is not built in or cannot run here, Code::kUsage when the name is unknown.
Result<std::unique_ptr<ops::Executor>> open_backend(std::string_view name, const BackendOptions& options);

}  // namespace juno
