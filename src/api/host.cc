// SPDX-License-Identifier: Apache-2.0
#include "api/host.h"

#include <fstream>
#include <sstream>

namespace juno::api {
namespace {

// The first "name : value" of a file of such lines.
std::string field(const char* path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

uint64_t kilobytes(const char* path, const std::string& name) {
  std::istringstream value(field(path, name + ":"));
  uint64_t count = 0;
  value >> count;
  return count * 1024;
}

// Version 2 of control groups, then 1.
std::optional<uint64_t> memory_limit(uint64_t total) {
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(path);
    uint64_t limit = 0;
    if (in >> limit && limit < total) return limit;
  }
  return {};
}

}  // namespace

std::string cpu_model() { return field("/proc/cpuinfo", "model name"); }

HostMemory host_memory() {
  const uint64_t total = kilobytes("/proc/meminfo", "MemTotal");
  return {total, kilobytes("/proc/meminfo", "MemAvailable"), memory_limit(total)};
}

bool restart_peak_memory() {
  std::ofstream clear("/proc/self/clear_refs");
  return static_cast<bool>(clear << "5" << std::flush);
}

uint64_t peak_memory() { return kilobytes("/proc/self/status", "VmHWM"); }

}  // namespace juno::api
