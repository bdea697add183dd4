// SPDX-License-Identifier: Apache-2.0
#include "api/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "api/host.h"
#include "api/version.h"
#include "backend/cpu/vec/isa.h"
#include "base/cpu_limits.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;  // it names itself
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

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
  const HostMemory memory = host_memory();
  return {{"versions", {{"juno", version_text()}, {"numerics", kNumericsVersion}, {"compiler", kCompiler}}},
          {"cpu",
           {{"model", cpu_model()},
            {"processors", limits.affinity},
            {"threads", limits.threads()},
            {"why", limits.text()}}},
          {"instruction_sets", sets},
          {"memory",
           {{"total", memory.total},
            {"available", memory.available},
            {"limit", memory.limit ? Json(*memory.limit) : Json(nullptr)}}},
          {"gpus", gpus()}};
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const cpu::Isa& isa : cpu::isas()) names.emplace_back(isa.name);
  return names;
}

}  // namespace juno::api
