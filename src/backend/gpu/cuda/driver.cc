// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace juno::gpu::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

Driver open_library() {
  const char* named = std::getenv("JUNO_CUDA_LIBRARY");
  const char* file = named && *named ? named : kLibrary;
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    fail(Code::kDevice, "[backend/gpu] no NVIDIA driver: {}", why ? why : file);
  }
  Driver driver;
#define JUNO_CUDA_LOOK_UP(name, arguments)                                    \
  driver.name = reinterpret_cast<Status(*) arguments>(dlsym(library, #name)); \
  if (!driver.name) fail(Code::kDevice, "[backend/gpu] {} is too old: it has no {}", file, #name);
  JUNO_CUDA_FUNCTIONS(JUNO_CUDA_LOOK_UP)
#undef JUNO_CUDA_LOOK_UP
  driver.check(driver.cuInit(0), "starting the NVIDIA driver");
  if (driver.devices() == 0) fail(Code::kDevice, "[backend/gpu] the NVIDIA driver knows no GPU");
  return driver;
}

}  // namespace

std::string Driver::text(Status status) const {
  const char *name = nullptr, *words = nullptr;
  if (cuGetErrorName(status, &name) != kSuccess || !name) return fmt::format("error {}", status);
  if (cuGetErrorString(status, &words) != kSuccess || !words) return name;
  return fmt::format("{}: {}", name, words);
}

void Driver::refuse(Status status, std::string_view what) const {
  fail(Code::kDevice, "[backend/gpu] {}: {}", what, text(status));
}

int Driver::devices() const {
  int count = 0;
  check(cuDeviceGetCount(&count), "counting GPUs");
  return count;
}

std::string Driver::version() const {
  int number = 0;
  check(cuDriverGetVersion(&number), "asking for the driver's version");
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

Result<Driver> open_driver() { return guard(open_library); }

}  // namespace juno::gpu::cuda
