// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/processor.h"

namespace juno {
namespace {

namespace fs = std::filesystem;

int affinity_count() {
  const std::vector<int> processors = allowed_processors();
  if (!processors.empty()) return static_cast<int>(processors.size());
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// quota / period of one group; 0 when it sets none.
double group_quota(const fs::path& group) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2(group / "cpu.max"); v2 >> quota >> period) {
    // "max 100000" or "150000 100000"
  } else if (std::ifstream v1(group / "cpu.cfs_quota_us"); v1 >> quota) {
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  std::istringstream number(quota);
  double microseconds = 0;
  if (!(number >> microseconds) || microseconds <= 0 || period <= 0) return 0;
  return microseconds / period;
}

// The least quota of a group and of those it is in. A container often sees a path that its mount does not
// have: levels that do not exist are passed over.
double path_quota(const fs::path& mount, const fs::path& path) {
  double least = 0;
  for (fs::path at = path.relative_path();; at = at.parent_path()) {
    const double quota = group_quota(mount / at);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (at.empty()) return least;
  }
}

}  // namespace

int CpuLimits::threads() const {
  const int allowed = quota > 0 ? static_cast<int>(std::ceil(std::min(quota, 1e6))) : affinity;
  return std::max(1, std::min(affinity, allowed));
}

std::string CpuLimits::text() const {
  const std::string limit = quota > 0 ? fmt::format("quota {:.2f}", quota) : std::string("no quota");
  return fmt::format("{} {} (affinity {}, {})", threads(), threads() == 1 ? "thread" : "threads", affinity,
                     limit);
}

CpuLimits cpu_limits(const fs::path& root) {
  CpuLimits limits{.affinity = affinity_count()};
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // id:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool holds_cpu = fmt::format(",{},", controllers).find(",cpu,") != std::string::npos;
    if (!controllers.empty() && !holds_cpu) continue;
    const std::string path = line.substr(second + 1);
    for (const fs::path& mount : {controllers.empty() ? mounts : mounts / controllers,
                                  mounts / (controllers.empty() ? "unified" : "cpu")}) {
      const double quota = path_quota(mount, path);
      if (quota > 0 && (limits.quota == 0 || quota < limits.quota)) limits.quota = quota;
    }
  }
  return limits;
}

}  // namespace juno
