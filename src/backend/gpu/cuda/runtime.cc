// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/cuda/runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <vector>

#include "backend/gpu/cuda/driver.h"
#include "backend/gpu/cuda/image.h"
#include "base/sha256.h"

namespace juno::gpu::cuda {
namespace {

constexpr size_t kStaging = size_t{16} << 20;  // bytes of each half through which large copies go
constexpr size_t kSmall = size_t{4} << 20;     // bytes of the ring for small ones
constexpr uint32_t kFreeShared = 48 << 10;     // bytes of shared memory that need no permission

Address address(const void* memory) { return reinterpret_cast<Address>(memory); }

std::string driver_version(const Driver& driver) {
  std::ifstream file("/sys/module/nvidia/version");
  std::string own;
  file >> own;
  return (own.empty() ? "" : own + ", ") + "CUDA " + driver.version();
}

class CudaGraph final : public gpu::Graph {
 public:
  CudaGraph(const Driver& driver, GraphExec exec, uint64_t kernels)
      : kernels(kernels), driver_(driver), exec_(exec) {}
  ~CudaGraph() override { driver_.cuGraphExecDestroy(exec_); }
  GraphExec exec() const { return exec_; }
  const uint64_t kernels;

 private:
  const Driver& driver_;
  GraphExec exec_;
};

// Marks on a stream.
class Events {
 public:
  Events(const Driver& driver, size_t count) : driver_(driver), events_(count) {
    for (Event& event : events_) driver_.check(driver_.cuEventCreate(&event, 0), "making an event");
  }
  ~Events() {
    for (Event event : events_)
      if (event) driver_.cuEventDestroy_v2(event);
  }
  Event operator[](size_t i) const { return events_[i]; }
  // Seconds between two of them, which have come to pass.
  double between(size_t first, size_t last) const {
    float milliseconds = 0;
    driver_.check(driver_.cuEventElapsedTime(&milliseconds, events_[first], events_[last]), "taking a time");
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  const Driver& driver_;
  std::vector<Event> events_;
};

// Pinned host memory: the device copies from and to it while the host goes on.
struct Pinned {
  std::byte* bytes = nullptr;
  size_t size = 0, used = 0;
  Event done = nullptr;
};

class CudaRuntime final : public Runtime {
 public:
  CudaRuntime(Driver driver, int index);
  ~CudaRuntime() override;

  ops::CardMemory memory() const override;
  Result<void*> allocate(size_t bytes) override;
  void release(void* memory) override;
  Result<void*> allocate_on_host(size_t bytes) override;
  void write(void* to, const void* from, size_t bytes) override;
  void read(void* to, const void* from, size_t bytes) override;
  void wait() override;
  double copy_rate() override;
  void launch(const Launch& launch) override;
  std::unique_ptr<gpu::Graph> capture(std::span<const Launch> launches) override;
  void replay(gpu::Graph& graph) override;
  std::vector<double> time_each(std::span<const Launch> launches) override;

 private:
  struct Kernel {
    Function function = nullptr;
    uint32_t shared = kFreeShared;  // bytes that it may ask for
  };

  void check(Status status, std::string_view what);
  void enter() const { driver_.cuCtxSetCurrent(context_); }
  void open_context();
  void load_kernels();
  void find_kernels();
  void* pin(size_t bytes);
  void pin(Pinned& pinned, size_t bytes);
  bool is_on_host(const void* memory) const { return std::ranges::count(on_host_, memory) > 0; }
  void enqueue(const Launch& launch, bool overlaps);
  template <class Work>
  GraphExec record(Work&& work);
  void write_large(Address to, const std::byte* from, size_t bytes);
  void close();

  const Driver driver_;
  DeviceId device_ = 0;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  std::vector<Module> modules_;
  std::vector<Kernel> kernels_;  // by their index in kernels/list.h
  size_t window_bytes_ = 0;      // that one launch can tell the cache about
  bool overlaps_ = false;        // a kernel may begin while the one before it ends
  Pinned small_, back_;          // to the device, from the device
  std::array<Pinned, 2> large_;
  int next_large_ = 0;
  std::map<void*, size_t> held_;
  std::vector<void*> on_host_;  // of allocate_on_host()
};

CudaRuntime::CudaRuntime(Driver driver, int index) : driver_(driver) {
  info_.index = index;
  try {
    open_context();
    load_kernels();
    find_kernels();
    pin(small_, kSmall);
    pin(back_, kSmall);
    for (Pinned& half : large_) pin(half, kStaging);
  } catch (...) {
    close();
    throw;
  }
}

CudaRuntime::~CudaRuntime() { close(); }

void CudaRuntime::check(Status status, std::string_view what) {
  if (status != kSuccess) [[unlikely]]
    ++traffic_.failures;
  driver_.check(status, what);
}

void CudaRuntime::open_context() {
  const int count = driver_.devices();
  if (info_.index < 0 || info_.index >= count)
    fail(Code::kDevice, "[backend/gpu] there is no GPU {}: this machine has {}, from 0", info_.index, count);
  check(driver_.cuDeviceGet(&device_, info_.index), "opening the GPU");
  char name[256] = {};
  check(driver_.cuDeviceGetName(name, sizeof name - 1, device_), "asking for the GPU's name");
  int major = 0, minor = 0;
  check(driver_.cuDeviceGetAttribute(&major, kMajor, device_), "asking for the GPU's kind");
  check(driver_.cuDeviceGetAttribute(&minor, kMinor, device_), "asking for the GPU's kind");
  check(driver_.cuDeviceGetAttribute(&chip_.multiprocessors, kMultiprocessors, device_),
        "asking for the GPU's size");
  int shared = 0;
  check(driver_.cuDeviceGetAttribute(&shared, kSharedOptin, device_), "asking for the GPU's shared memory");
  chip_.shared_per_block = static_cast<uint32_t>(shared);
  int window = 0;
  check(driver_.cuDeviceGetAttribute(&window, kMaxWindow, device_), "asking how the GPU's cache may be told");
  window_bytes_ = static_cast<size_t>(std::max(window, 0));
  info_.name = name;
  info_.driver = driver_version(driver_);
  info_.target = fmt::format("sm_{}{}", major, minor);
  overlaps_ = major == 9 && minor == 0;  // what runs on others was compiled for sm_80, which knows no overlap
  check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "making a context on the GPU");
  check(driver_.cuCtxSetCurrent(context_), "making a context on the GPU");
  check(driver_.cuStreamCreate(&stream_, kNonBlocking), "making a stream on the GPU");
}

void CudaRuntime::load_kernels() {
  const KernelImage& image = kernel_image();
  if (!image.missing.empty())
    fail(Code::kDevice, "[backend/gpu] this program holds no CUDA kernels: {}", image.missing);
  Sha256 sum;
  sum.add(image.bytes);
  info_.kernels_sha256 = sum.hex();
  if (info_.kernels_sha256 != image.sha256)
    fail(Code::kDevice, "[backend/gpu] the CUDA kernels in this program are damaged: SHA-256 {}, built as {}",
         info_.kernels_sha256, image.sha256);
  size_t at = 0;
  for (uint32_t size : image.sizes) {
    const auto begin = image.bytes.begin() + static_cast<ptrdiff_t>(at);
    const std::vector<uint8_t> aligned(begin, begin + size);
    Module module = nullptr;
    const Status status = driver_.cuModuleLoadData(&module, aligned.data());
    if (status == kNoBinary || status == kUnsupportedPtx)
      fail(Code::kDevice,
           "[backend/gpu] the kernels have no code for {} ({}); built are sm_90a, and sm_80 for what the "
           "driver "
           "({}) can translate: {}",
           info_.name, info_.target, info_.driver, driver_.text(status));
    check(status, "loading the kernels");
    modules_.push_back(module);
    at += size;
  }
}

void CudaRuntime::find_kernels() {
  for (const char* name : kernel_names()) {
    Kernel kernel;
    Status status = kSuccess;
    for (Module module : modules_) {
      status = driver_.cuModuleGetFunction(&kernel.function, module, name);
      if (status == kSuccess) break;
    }
    check(status, fmt::format("looking for the kernel {}", name));
    // All share a multiprocessor's memory out alike, as much of it as may be to what threads share: between
    // kernels that do not it has to run empty, which costs a launch several microseconds.
    constexpr int kAll = 100;
    check(driver_.cuFuncSetAttribute(kernel.function, kSharedCarveout, kAll), "asking for shared memory");
    kernels_.push_back(kernel);
  }
}

void* CudaRuntime::pin(size_t bytes) {
  void* memory = nullptr;
  check(driver_.cuMemHostAlloc(&memory, bytes, 0), "pinning host memory");
  return memory;
}

void CudaRuntime::pin(Pinned& pinned, size_t bytes) {
  pinned.bytes = static_cast<std::byte*>(pin(bytes));
  pinned.size = bytes;
  check(driver_.cuEventCreate(&pinned.done, 0), "making an event");
}

// What the driver answers here helps nobody any more.
void CudaRuntime::close() {
  if (!context_) return;
  enter();
  if (stream_) driver_.cuStreamSynchronize(stream_);
  for (const auto& [memory, bytes] : held_) driver_.cuMemFree_v2(address(memory));
  for (void* memory : on_host_) driver_.cuMemFreeHost(memory);
  for (Pinned* pinned : {&small_, &back_, &large_[0], &large_[1]}) {
    if (pinned->done) driver_.cuEventDestroy_v2(pinned->done);
    if (pinned->bytes) driver_.cuMemFreeHost(pinned->bytes);
  }
  for (Module module : modules_) driver_.cuModuleUnload(module);
  if (stream_) driver_.cuStreamDestroy_v2(stream_);
  driver_.cuDevicePrimaryCtxRelease_v2(device_);
}

ops::CardMemory CudaRuntime::memory() const {
  enter();
  size_t free = 0, total = 0;
  driver_.check(driver_.cuMemGetInfo_v2(&free, &total), "asking for the GPU's free memory");
  return {free, total};
}

Result<void*> CudaRuntime::allocate(size_t bytes) {
  enter();
  return guard([&]() -> void* {
    Address at = 0;
    const size_t size = allocation_bytes(bytes);
    const Status status = driver_.cuMemAlloc_v2(&at, size);
    if (status == kOutOfMemory) {
      ++traffic_.failures;
      const ops::CardMemory now = memory();
      fail(Code::kDevice, "[backend/gpu] {} has no {} bytes of memory: {} of {} are free", info_.name, bytes,
           now.free, now.total);
    }
    check(status, "allocating GPU memory");
    void* const memory = reinterpret_cast<void*>(at);
    held_.emplace(memory, size);
    hold(size);
    check(driver_.cuMemsetD8Async(at, 0, size, stream_), "zeroing GPU memory");
    return memory;
  });
}

Result<void*> CudaRuntime::allocate_on_host(size_t bytes) {
  enter();
  return guard([&] {
    on_host_.reserve(on_host_.size() + 1);
    on_host_.push_back(pin(bytes));
    std::memset(on_host_.back(), 0, bytes);
    return on_host_.back();
  });
}

void CudaRuntime::release(void* memory) {
  const auto held = held_.find(memory);
  const bool on_host = is_on_host(memory);
  if (held == held_.end() && !on_host) return;
  enter();
  driver_.cuStreamSynchronize(stream_);  // work before this may still use it
  if (on_host) {
    driver_.cuMemFreeHost(memory);
    std::erase(on_host_, memory);
    return;
  }
  driver_.cuMemFree_v2(address(memory));
  let_go(held->second);
  held_.erase(held);
}

void CudaRuntime::write(void* to, const void* from, size_t bytes) {
  enter();
  traffic_.written += bytes;
  if (bytes > small_.size / 4) return write_large(address(to), static_cast<const std::byte*>(from), bytes);
  if (small_.used + bytes > small_.size) wait();
  std::byte* const room = small_.bytes + small_.used;
  std::memcpy(room, from, bytes);
  small_.used += (bytes + 63) / 64 * 64;
  check(driver_.cuMemcpyHtoDAsync_v2(address(to), room, bytes, stream_), "copying to the GPU");
}

// Through two halves: one is filled while the device takes the other.
void CudaRuntime::write_large(Address to, const std::byte* from, size_t bytes) {
  while (bytes > 0) {
    Pinned& half = large_[next_large_];
    next_large_ ^= 1;
    const size_t part = std::min(bytes, half.size);
    check(driver_.cuEventSynchronize(half.done), "waiting for a copy to the GPU");
    std::memcpy(half.bytes, from, part);
    check(driver_.cuMemcpyHtoDAsync_v2(to, half.bytes, part, stream_), "copying to the GPU");
    check(driver_.cuEventRecord(half.done, stream_), "copying to the GPU");
    to += part;
    from += part;
    bytes -= part;
  }
}

void CudaRuntime::read(void* to, const void* from, size_t bytes) {
  enter();
  traffic_.read += bytes;
  if (is_on_host(from)) {
    wait();
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  Address at = address(from);
  while (bytes > 0) {
    const size_t part = std::min(bytes, back_.size);
    check(driver_.cuMemcpyDtoHAsync_v2(back_.bytes, at, part, stream_), "copying from the GPU");
    wait();
    std::memcpy(out, back_.bytes, part);
    out += part;
    at += part;
    bytes -= part;
  }
}

void CudaRuntime::wait() {
  enter();
  check(driver_.cuStreamSynchronize(stream_), "running kernels");
  small_.used = 0;
}

double CudaRuntime::copy_rate() {
  constexpr int kTimes = 4;
  constexpr size_t kMost = size_t{1} << 30;
  const size_t bytes = std::min<size_t>(kMost, memory().free / 4);
  void* const to = take(allocate(bytes));
  void* const from = take(allocate(bytes));
  double best = 0;  // seconds
  const Events events(driver_, 2);
  for (int i = 0; i < kTimes; ++i) {
    check(driver_.cuEventRecord(events[0], stream_), "measuring a copy");
    check(driver_.cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, stream_), "measuring a copy");
    check(driver_.cuEventRecord(events[1], stream_), "measuring a copy");
    check(driver_.cuEventSynchronize(events[1]), "measuring a copy");
    const double time = events.between(0, 1);
    if (i == 1 || time < best) best = time;  // the first one warms up
  }
  release(to);
  release(from);
  return best > 0 ? 2.0 * static_cast<double>(bytes) / best : 0;
}

void CudaRuntime::launch(const Launch& launch) {
  enter();
  enqueue(launch, overlaps_);
  ++traffic_.launches;
}

// overlaps: with what is asked for before it.
void CudaRuntime::enqueue(const Launch& launch, bool overlaps) {
  Kernel& kernel = kernels_[static_cast<size_t>(launch.kernel)];
  if (launch.shared > kernel.shared) {
    check(driver_.cuFuncSetAttribute(kernel.function, kMaxDynamicShared, static_cast<int>(launch.shared)),
          "asking for shared memory");
    kernel.shared = launch.shared;
  }
  LaunchAttribute attributes[2];
  unsigned count = 0;
  if (overlaps) {
    attributes[count].id = kProgrammaticSerialization;
    attributes[count++].value = 1;
  }
  if (const size_t bytes = std::min<uint64_t>(launch.passing.bytes, window_bytes_); bytes > 0) {
    attributes[count].id = kAccessPolicyWindow;
    attributes[count++].window = {const_cast<void*>(launch.passing.begin), bytes, 1, kStreaming, kNormal};
  }
  const LaunchConfig config{.grid = {launch.grid.x, launch.grid.y, launch.grid.z},
                            .block = {launch.threads, 1, 1},
                            .shared_bytes = launch.shared,
                            .stream = stream_,
                            .attributes = attributes,
                            .attribute_count = count};
  void* arguments[] = {const_cast<std::byte*>(launch.args)};
  const Status status = driver_.cuLaunchKernelEx(&config, kernel.function, arguments, nullptr);
  if (status != kSuccess) [[unlikely]]
    check(status, fmt::format("starting {} on {} x {} x {} blocks of {} threads with {} bytes",
                              kernel_names()[static_cast<size_t>(launch.kernel)], launch.grid.x,
                              launch.grid.y, launch.grid.z, launch.threads, launch.shared));
}

// What `work` asks of the stream, as a graph.
template <class Work>
GraphExec CudaRuntime::record(Work&& work) {
  enter();
  check(driver_.cuStreamBeginCapture_v2(stream_, kCaptureThreadLocal), "recording a graph");
  Graph graph = nullptr;
  try {
    work();
  } catch (...) {
    driver_.cuStreamEndCapture(stream_, &graph);
    if (graph) driver_.cuGraphDestroy(graph);
    throw;
  }
  check(driver_.cuStreamEndCapture(stream_, &graph), "recording a graph");
  GraphExec exec = nullptr;
  const Status status = driver_.cuGraphInstantiateWithFlags(&exec, graph, 0);
  driver_.cuGraphDestroy(graph);
  check(status, "making a graph ready to run");
  return exec;
}

std::unique_ptr<gpu::Graph> CudaRuntime::capture(std::span<const Launch> launches) {
  const GraphExec exec = record([&] {
    for (const Launch& one : launches) enqueue(one, overlaps_);
  });
  return std::make_unique<CudaGraph>(driver_, exec, launches.size());
}

void CudaRuntime::replay(gpu::Graph& graph) {
  enter();
  const auto& own = static_cast<CudaGraph&>(graph);
  check(driver_.cuGraphLaunch(own.exec(), stream_), "running a graph");
  traffic_.launches += own.kernels;
}

// As a graph, whose kernels and events the device comes by without waiting for the host; the first time it
// still fetches what it is made of.
std::vector<double> CudaRuntime::time_each(std::span<const Launch> launches) {
  const Events events(driver_, launches.size() + 1);
  const auto mark = [&](size_t i) {
    check(driver_.cuEventRecordWithFlags(events[i], stream_, kRecordInGraph), "marking a time");
  };
  CudaGraph graph(driver_, record([&] {
                    mark(0);
                    for (size_t i = 0; i < launches.size(); ++i) {
                      enqueue(launches[i], false);
                      mark(i + 1);
                    }
                  }),
                  launches.size());
  for (int i = 0; i < 2; ++i) replay(graph);
  wait();
  std::vector<double> seconds;
  for (size_t i = 0; i < launches.size(); ++i) seconds.push_back(events.between(i, i + 1));
  return seconds;
}

}  // namespace

Result<std::unique_ptr<Runtime>> open_runtime(int index) {
  return guard([&]() -> std::unique_ptr<Runtime> {
    return std::make_unique<CudaRuntime>(take(open_driver()), index);
  });
}

}  // namespace juno::gpu::cuda
