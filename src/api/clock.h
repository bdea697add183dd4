// SPDX-License-Identifier: Apache-2.0
// The clock that durations are measured with.
#pragma once
#include <chrono>

namespace juno::api {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace juno::api
