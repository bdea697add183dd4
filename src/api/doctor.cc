// SPDX-License-Identifier: Apache-2.0
#include "api/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "api/host.h"
#include "api/placement.h"
#include "api/version.h"
#include "backend/backends.h"
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
  const char* backend;
  const char* built;  // what its kernels are compiled for
};
constexpr Vendor kVendors[] = {{"NVIDIA", "libcuda.so.1", "cuda", "sm_90a, and sm_80 for what is newer"},
                               {"AMD", "libamdhip64.so", "rocm", "nothing"}};

bool found(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle) dlclose(handle);
  return handle != nullptr;
}

// What each card is, or why there is none.
Json gpus() {
  Json list = Json::array();
  for (const Vendor& v : kVendors) {
    Json entry = {
        {"vendor", v.name}, {"library", v.library}, {"found", found(v.library)}, {"built", v.built}};
    const auto opened = open_backend(v.backend, {.threads = 1});
    if (opened) {
      const ops::Device& device = (*opened)->device();
      const ops::DeviceInfo info = device.info();
      const ops::CardMemory memory = device.memory().value_or(ops::CardMemory{});
      entry["device"] = device_json(device);
      entry["memory"] = {{"free", memory.free}, {"total", memory.total}};
      entry["why"] = fmt::format("{} ({}), driver {}, {:.1f} of {:.1f} GB free, kernels {:.12} built for {}",
                                 info.name, info.target, info.driver, static_cast<double>(memory.free) / 1e9,
                                 static_cast<double>(memory.total) / 1e9, info.kernels_sha256, v.built);
    } else {
      entry["why"] = opened.error().message;
    }
    list.push_back(std::move(entry));
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
