// SPDX-License-Identifier: Apache-2.0
// Stands in for libcuda.so.1: host memory as the card's, and failures as told. Kernels do nothing, unless the
// program that loaded it offers juno_standin_launch to run them.
//
// What it is told, words separated by blanks, through JUNO_STANDIN or juno_standin():
//   devices=N     GPUs there are (1)          memory=BYTES   of the card (1 GiB)
//   no-code       no kernel fits the card     allocation=N   the N-th from now fails, once
//   launch=N      the N-th from now fails, once
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

using Status = int;
constexpr Status kGood = 0, kInvalid = 1, kOutOfMemory = 2, kNoBinary = 209, kLaunchFailed = 719;

using Run = void (*)(const char* kernel, const unsigned* grid, unsigned threads, unsigned shared,
                     const void* args);

using Clock = std::chrono::steady_clock;
using Mark = Clock::time_point;  // of an event

// A kernel, or an event.
struct Call {
  std::string kernel;
  unsigned grid[3], threads, shared;
  std::vector<unsigned char> args;
  bool overlaps = false;  // it may begin before what is before it has ended
  Mark* mark = nullptr;
};

struct Card {
  int devices = 1;
  uint64_t memory = uint64_t{1} << 30, held = 0, most = 0;
  bool no_code = false, capturing = false, told = false;
  long allocation = 0, launch = 0;  // that fail; 0: none
  uint64_t graphs = 0;              // that were made ready to run
  std::map<void*, size_t> blocks;
  std::vector<Call> captured;
  Run run = nullptr;
};
Card card;

long number(const std::string& words, const std::string& name, long otherwise) {
  const size_t at = words.find(name + "=");
  return at == std::string::npos ? otherwise : std::atol(words.c_str() + at + name.size() + 1);
}

void obey(const char* words) {
  const std::string text = words ? words : "";
  card.devices = static_cast<int>(number(text, "devices", 1));
  card.memory = static_cast<uint64_t>(number(text, "memory", long{1} << 30));
  card.no_code = text.find("no-code") != std::string::npos;
  card.allocation = number(text, "allocation", 0);
  card.launch = number(text, "launch", 0);
}

bool strikes(long& left) { return left > 0 && --left == 0; }

Status start(const Call& call) {
  if (call.mark) return *call.mark = Clock::now(), kGood;
  if (strikes(card.launch)) return kLaunchFailed;
  if (card.run) card.run(call.kernel.c_str(), call.grid, call.threads, call.shared, call.args.data());
  return kGood;
}

const char* words_of(Status status) {
  switch (status) {
    case kGood:
      return "no error";
    case kOutOfMemory:
      return "out of memory";
    case kNoBinary:
      return "no kernel image is available for execution on the device";
    case kLaunchFailed:
      return "unspecified launch failure";
    default:
      return "unknown error";
  }
}

constexpr size_t kArguments = 512;  // of a kernel, at most

// Of a launch: CUlaunchAttributeID. The window is shorter than a real card's, and than a weight.
constexpr int kWindow = 1, kOverlap = 6;
constexpr int kMaxWindow = 16 * 1024;
struct Attribute {
  int id, pad;
  union {
    int value;
    struct {
      void* begin;
      size_t bytes;
    } window;
    char room[64];
  };
};
struct Config {
  unsigned grid[3], block[3], shared;
  void* stream;
  const Attribute* attributes;
  unsigned count;

  const Attribute* find(int id) const {
    const Attribute* const end = attributes + count;
    const Attribute* const it = std::find_if(attributes, end, [&](const Attribute& a) { return a.id == id; });
    return it == end ? nullptr : it;
  }
};

}  // namespace

extern "C" {

void juno_standin(const char* words) {
  obey(words);
  card.told = true;
  card.most = card.held;
}
uint64_t juno_standin_held() { return card.held; }
uint64_t juno_standin_most() { return card.most; }
uint64_t juno_standin_graphs() { return card.graphs; }

Status cuInit(unsigned) {
  if (const char* words = std::getenv("JUNO_STANDIN"); words && !card.told) obey(words);
  card.told = true;
  card.run = reinterpret_cast<Run>(dlsym(RTLD_DEFAULT, "juno_standin_launch"));
  return kGood;
}
Status cuDriverGetVersion(int* version) {
  *version = 12080;
  return kGood;
}
Status cuGetErrorName(Status status, const char** name) {
  *name = status == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  return kGood;
}
Status cuGetErrorString(Status status, const char** text) {
  *text = words_of(status);
  return kGood;
}
Status cuDeviceGetCount(int* count) {
  *count = card.devices;
  return kGood;
}
Status cuDeviceGet(int* device, int index) {
  *device = index;
  return kGood;
}
Status cuDeviceGetName(char* name, int room, int) {
  std::snprintf(name, static_cast<size_t>(room), "Stand-in");
  return kGood;
}
Status cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75    ? 9
           : attribute == 76  ? 0
           : attribute == 16  ? 4
           : attribute == 109 ? kMaxWindow
                              : 227 * 1024;
  return kGood;
}
Status cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &card;
  return kGood;
}
Status cuDevicePrimaryCtxRelease_v2(int) { return kGood; }
Status cuCtxSetCurrent(void*) { return kGood; }
Status cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = card.held < card.memory ? card.memory - card.held : 0;
  *total = card.memory;
  return kGood;
}
Status cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  if (strikes(card.allocation) || card.held + bytes > card.memory) return kOutOfMemory;
  void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!block) return kOutOfMemory;
  card.blocks[block] = bytes;
  card.held += bytes;
  if (card.held > card.most) card.most = card.held;
  *address = reinterpret_cast<unsigned long long>(block);
  return kGood;
}
Status cuMemFree_v2(unsigned long long address) {
  const auto block = card.blocks.find(reinterpret_cast<void*>(address));
  if (block == card.blocks.end()) return 1;
  card.held -= block->second;
  std::free(block->first);
  card.blocks.erase(block);
  return kGood;
}
Status cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  if (strikes(card.allocation)) return kOutOfMemory;
  *memory = std::malloc(bytes);
  return *memory ? kGood : kOutOfMemory;
}
Status cuMemFreeHost(void* memory) {
  std::free(memory);
  return kGood;
}
Status cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void*) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return kGood;
}
Status cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kGood;
}
Status cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}
Status cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void*) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kGood;
}
Status cuStreamCreate(void** stream, unsigned) {
  *stream = &card;
  return kGood;
}
Status cuStreamDestroy_v2(void*) { return kGood; }
Status cuStreamSynchronize(void*) { return kGood; }
Status cuStreamBeginCapture_v2(void*, int) {
  card.capturing = true;
  card.captured.clear();
  return kGood;
}
Status cuStreamEndCapture(void*, void** graph) {
  card.capturing = false;
  *graph = new std::vector<Call>(std::move(card.captured));
  return kGood;
}
Status cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  const auto& calls = *static_cast<std::vector<Call>*>(graph);
  const auto any = [&](auto is) { return std::any_of(calls.begin(), calls.end(), is); };
  // A time says nothing of a kernel beside which another runs.
  if (any([](const Call& c) { return c.mark; }) && any([](const Call& c) { return c.overlaps; }))
    return kInvalid;
  *exec = new std::vector<Call>(calls);
  ++card.graphs;
  return kGood;
}
Status cuGraphDestroy(void* graph) {
  delete static_cast<std::vector<Call>*>(graph);
  return kGood;
}
Status cuGraphExecDestroy(void* exec) { return cuGraphDestroy(exec); }
Status cuGraphLaunch(void* exec, void*) {
  for (const Call& call : *static_cast<std::vector<Call>*>(exec))
    if (const Status status = start(call)) return status;
  return kGood;
}
Status cuModuleLoadData(void** module, const void*) {
  *module = &card;
  return card.no_code ? kNoBinary : kGood;
}
Status cuModuleUnload(void*) { return kGood; }
Status cuModuleGetFunction(void** function, void*, const char* name) {
  *function = const_cast<char*>(name);  // the caller's names are literals
  return kGood;
}
Status cuFuncSetAttribute(void*, int, int) { return kGood; }
Status cuLaunchKernelEx(const void* how, void* function, void** arguments, void**) {
  const auto& config = *static_cast<const Config*>(how);
  if (const Attribute* told = config.find(kWindow); told && told->window.bytes > kMaxWindow) return kInvalid;
  const auto* bytes = static_cast<const unsigned char*>(arguments[0]);
  Call call{static_cast<const char*>(function),
            {config.grid[0], config.grid[1], config.grid[2]},
            config.block[0],
            config.shared,
            {bytes, bytes + kArguments},
            config.find(kOverlap) != nullptr};
  if (!card.capturing) return start(call);
  card.captured.push_back(std::move(call));
  return kGood;
}
Status cuEventCreate(void** event, unsigned) {
  *event = new Mark();
  return kGood;
}
Status cuEventDestroy_v2(void* event) {
  delete static_cast<Mark*>(event);
  return kGood;
}
Status cuEventRecord(void* event, void*) {
  *static_cast<Mark*>(event) = Clock::now();
  return kGood;
}
Status cuEventRecordWithFlags(void* event, void*, unsigned in_graph) {
  if (in_graph != 1 || !card.capturing) return kInvalid;
  Call call;
  call.mark = static_cast<Mark*>(event);
  card.captured.push_back(std::move(call));
  return kGood;
}
Status cuEventSynchronize(void*) { return kGood; }
Status cuEventElapsedTime(float* milliseconds, void* first, void* last) {
  const auto between = *static_cast<Mark*>(last) - *static_cast<Mark*>(first);
  *milliseconds = std::chrono::duration<float, std::milli>(between).count();
  return kGood;
}

}  // extern "C"
