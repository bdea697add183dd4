// SPDX-License-Identifier: Apache-2.0
// How many processors this process may use: its affinity mask and the CPU quota of its control group, not the
// size of the machine.
#pragma once
#include <filesystem>
#include <string>

namespace juno {

struct CpuLimits {
  int affinity = 1;  // processors in the mask
  double quota = 0;  // processors' worth of time that the control groups allow; 0: no limit

  // The smaller of both, a part of a processor counted as one; at least 1.
  int threads() const;
  // "2 threads (affinity 8, quota 1.50)"
  std::string text() const;
};

// `root` stands for "/": control groups v1 and v2 are looked for under it, each level up to the topmost.
CpuLimits cpu_limits(const std::filesystem::path& root = "/");

}  // namespace juno
