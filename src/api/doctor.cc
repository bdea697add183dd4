// SPDX-License-Identifier: Apache-2.0
#include "api/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "api/version.h"
#include "backend/cpu/vec/isa.h"
#include "base/cpu_limits.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

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

uint64_t memory_bytes(const std::string& name) {
  std::istringstream value(field("/proc/meminfo", name + ":"));
  uint64_t kilobytes = 0;
  value >> kilobytes;
  return kilobytes * 1024;
}

// The control group's limit (v2, then v1), null when there is none.
Json memory_limit(uint64_t total) {
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(path);
    uint64_t limit = 0;
    if (in >> limit && limit < total) return limit;
  }
  return nullptr;
}

struct Vendor {
  const char* name;
  const char* library;
};
constexpr Vendor kVendors[] = {{"NVIDIA", "libcuda.so.1"}, {"AMD", "libamdhip64.so"}};

Json gpus() {
  Json list = Json::array();
  for (const Vendor& v : kVendors) {
    void* library = dlopen(v.library, RTLD_LAZY | RTLD_LOCAL);
    const char* error = library ? nullptr : dlerror();
    list.push_back({{"vendor", v.name},
                    {"library", v.library},
                    {"found", library != nullptr},
                    {"why", library ? fmt::format("{} is there, but this program is built without {} kernels",
                                                  v.library, v.name)
                                    : fmt::format("no driver ({})", error ? error : "unknown reason")}});
    if (library) dlclose(library);
  }
  return list;
}

}  // namespace

Json doctor() {
  const CpuLimits limits = cpu_limits();
  Json sets = Json::array();
  for (const cpu::Isa& isa : cpu::isas()) sets.push_back({{"name", isa.name}, {"usable", isa.supported()}});
  const uint64_t total = memory_bytes("MemTotal");
  return {{"versions", {{"juno", version_text()}, {"numerics", kNumericsVersion}, {"compiler", __VERSION__}}},
          {"cpu",
           {{"model", field("/proc/cpuinfo", "model name")},
            {"processors", limits.affinity},
            {"threads", limits.threads()},
            {"why", limits.text()}}},
          {"instruction_sets", sets},
          {"memory",
           {{"total", total}, {"available", memory_bytes("MemAvailable")}, {"limit", memory_limit(total)}}},
          {"gpus", gpus()}};
}

}  // namespace juno::api
