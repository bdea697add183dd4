// SPDX-License-Identifier: Apache-2.0
// What the operating system says of the machine and of this process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace juno::api {

std::string cpu_model();

struct HostMemory {
  uint64_t total = 0, available = 0;
  std::optional<uint64_t> limit;  // of the control group, where it is less than the total

  // What this process may still take.
  uint64_t usable() const { return limit && *limit < available ? *limit : available; }
};
HostMemory host_memory();

// Lets peak_memory() count from now on; false where the system does not allow that, and it counts from the
// start of the process.
bool restart_peak_memory();
// Bytes that the process had in memory at most, pages of mapped files included.
uint64_t peak_memory();

}  // namespace juno::api
