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
  ops::Activations activations = ops::Activations::kInt8;
  std::shared_ptr<ThreadPool> pool;  // the CPU's, if several models share one
  Log log;
};

struct Backend {
  std::string_view name;
  // Null: the name is known, but its code is not built into this program.
  Result<std::unique_ptr<ops::Executor>> (*open)(const BackendOptions& options);
};

std::span<const Backend> backends();

// Fails with Code::kDevice when the backend is not built in or cannot run here, Code::kUsage when the name is
// unknown.
Result<std::unique_ptr<ops::Executor>> open_backend(std::string_view name, const BackendOptions& options);

}  // namespace juno
