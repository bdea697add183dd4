// SPDX-License-Identifier: Apache-2.0
// The few functions of NVIDIA's driver library that Juno calls, looked up in libcuda.so.1 when a GPU is asked
// for. Declared here by hand (names, numbers and layouts are the driver's stable ABI), so that neither
// building nor running needs a CUDA toolkit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace juno::gpu::cuda {

// Opaque handles and numbers of the driver's ABI.
using Status = int;
using DeviceId = int;
using Address = unsigned long long;
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using Event = struct EventTag*;

inline constexpr Status kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kNoBinary = 209,
                        kUnsupportedPtx = 222;

// CUdevice_attribute
inline constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kSharedOptin = 97, kMaxWindow = 109;
// CUfunction_attribute
inline constexpr int kMaxDynamicShared = 8, kSharedCarveout = 9;
// CUstream_flags, CUstreamCaptureMode
inline constexpr unsigned kNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1;
// CUevent_record_flags
inline constexpr unsigned kRecordInGraph = 1;
// CUlaunchAttributeID
inline constexpr int kAccessPolicyWindow = 1, kProgrammaticSerialization = 6;
// CUaccessProperty
inline constexpr int kNormal = 0, kStreaming = 1;

struct AccessPolicyWindow {
  void* begin;
  size_t bytes;
  float ratio;
  int hit, miss;  // what becomes of `ratio` of the window's lines, and of the others
};

struct LaunchAttribute {
  int id = 0;
  char pad[4] = {};
  union {
    int value;
    AccessPolicyWindow window;
    char room[64];
  };
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

// name, arguments. A suffix _v2 is part of the exported name.
#define JUNO_CUDA_FUNCTIONS(X)                                            \
  X(cuInit, (unsigned))                                                   \
  X(cuDriverGetVersion, (int*))                                           \
  X(cuGetErrorName, (Status, const char**))                               \
  X(cuGetErrorString, (Status, const char**))                             \
  X(cuDeviceGetCount, (int*))                                             \
  X(cuDeviceGet, (DeviceId*, int))                                        \
  X(cuDeviceGetName, (char*, int, DeviceId))                              \
  X(cuDeviceGetAttribute, (int*, int, DeviceId))                          \
  X(cuDevicePrimaryCtxRetain, (Context*, DeviceId))                       \
  X(cuDevicePrimaryCtxRelease_v2, (DeviceId))                             \
  X(cuCtxSetCurrent, (Context))                                           \
  X(cuMemGetInfo_v2, (size_t*, size_t*))                                  \
  X(cuMemAlloc_v2, (Address*, size_t))                                    \
  X(cuMemFree_v2, (Address))                                              \
  X(cuMemHostAlloc, (void**, size_t, unsigned))                           \
  X(cuMemFreeHost, (void*))                                               \
  X(cuMemsetD8Async, (Address, unsigned char, size_t, Stream))            \
  X(cuMemcpyHtoDAsync_v2, (Address, const void*, size_t, Stream))         \
  X(cuMemcpyDtoHAsync_v2, (void*, Address, size_t, Stream))               \
  X(cuMemcpyDtoDAsync_v2, (Address, Address, size_t, Stream))             \
  X(cuStreamCreate, (Stream*, unsigned))                                  \
  X(cuStreamDestroy_v2, (Stream))                                         \
  X(cuStreamSynchronize, (Stream))                                        \
  X(cuStreamBeginCapture_v2, (Stream, int))                               \
  X(cuStreamEndCapture, (Stream, Graph*))                                 \
  X(cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long)) \
  X(cuGraphDestroy, (Graph))                                              \
  X(cuGraphExecDestroy, (GraphExec))                                      \
  X(cuGraphLaunch, (GraphExec, Stream))                                   \
  X(cuModuleLoadData, (Module*, const void*))                             \
  X(cuModuleUnload, (Module))                                             \
  X(cuModuleGetFunction, (Function*, Module, const char*))                \
  X(cuFuncSetAttribute, (Function, int, int))                             \
  X(cuLaunchKernelEx, (const LaunchConfig*, Function, void**, void**))    \
  X(cuEventCreate, (Event*, unsigned))                                    \
  X(cuEventDestroy_v2, (Event))                                           \
  X(cuEventRecord, (Event, Stream))                                       \
  X(cuEventRecordWithFlags, (Event, Stream, unsigned))                    \
  X(cuEventSynchronize, (Event))                                          \
  X(cuEventElapsedTime, (float*, Event, Event))

struct Driver {
#define JUNO_CUDA_POINTER(name, arguments) Status(*name) arguments = nullptr;
  JUNO_CUDA_FUNCTIONS(JUNO_CUDA_POINTER)
#undef JUNO_CUDA_POINTER

  // The driver's own words: "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  std::string text(Status status) const;
  // Fails with Code::kDevice, saying what was attempted.
  void check(Status status, std::string_view what) const {
    if (status != kSuccess) [[unlikely]]
      refuse(status, what);
  }
  int devices() const;          // how many there are
  std::string version() const;  // of CUDA that the driver speaks: "13.0"

 private:
  [[noreturn]] void refuse(Status status, std::string_view what) const;
};

// Opens the library and initialises it; both are kept for the process's life, because unloading a driver with
// threads of its own is not safe. Fails with Code::kDevice: no library, a function it lacks, no GPU.
// `JUNO_CUDA_LIBRARY` in the environment names another file than libcuda.so.1: tests put a library there that
// fails as told.
Result<Driver> open_driver();

}  // namespace juno::gpu::cuda
