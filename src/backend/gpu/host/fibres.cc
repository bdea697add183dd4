// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/fibres.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstring>
#include <exception>
#include <memory>

#include "base/error.h"

namespace juno::gpu::host {
namespace {

constexpr size_t kStack = 128 * 1024;
constexpr size_t kSharedAlign = 128;

// A new fibre begins by setcontext; later turns go by _setjmp and _longjmp, which do not ask the kernel.
struct Fibre {
  Standing standing;
  std::vector<std::vector<Copy>> copies;
  std::unique_ptr<std::byte[]> stack;
  ucontext_t start;
  jmp_buf turn;
  bool started = false, done = false;
};

class Block {
 public:
  Block(Body body, const Launch& launch, Order order) : body_(body), launch_(launch), order_(order) {
    fibres_.resize(launch.threads);
    warps_.resize(launch.threads / kWarp);
    memory_.resize(launch.shared + kSharedAlign);
  }

  void run(const Extent& at);
  void meet();
  const std::byte* meet(Warp& warp, const void* mine, size_t bytes);
  template <class Condition>
  void wait(Condition&& met);
  Standing& standing() { return fibres_[static_cast<size_t>(current_)].standing; }

 private:
  static void begin(Fibre& fibre);
  void prepare(const Extent& at);
  static void enter();
  void live();
  void next();
  void switch_to(int fibre);
  void give_up(const char* why);

  const Body body_;
  const Launch& launch_;
  const Order order_;
  std::vector<Fibre> fibres_;
  std::vector<Warp> warps_;
  std::vector<std::byte> memory_;
  jmp_buf back_;
  int current_ = 0, left_ = 0, arrived_ = 0;
  uint32_t meetings_ = 0, idle_ = 0;
  std::exception_ptr failed_;
};

thread_local Block* running = nullptr;

void Block::enter() { running->live(); }

// A fibre's whole life: one body a block.
void Block::live() {
  for (;;) {
    Fibre& self = fibres_[static_cast<size_t>(current_)];
    try {
      body_(launch_.args);
    } catch (...) {
      failed_ = std::current_exception();
    }
    if (failed_) _longjmp(back_, 1);
    self.done = true;
    idle_ = 0;
    if (--left_ == 0) {
      if (!_setjmp(self.turn)) _longjmp(back_, 1);
    } else {
      next();
    }
  }
}

void Block::switch_to(int fibre) {
  Fibre& self = fibres_[static_cast<size_t>(current_)];
  Fibre& other = fibres_[static_cast<size_t>(fibre)];
  if (&self == &other && self.started) return;
  if (_setjmp(self.turn)) return;
  current_ = fibre;
  if (other.started) _longjmp(other.turn, 1);
  other.started = true;
  setcontext(&other.start);
}

void Block::next() {
  const int count = static_cast<int>(launch_.threads), step = order_ == Order::kForward ? 1 : count - 1;
  int fibre = current_;
  do fibre = (fibre + step) % count;
  while (fibres_[static_cast<size_t>(fibre)].done);
  switch_to(fibre);
}

void Block::give_up(const char* why) {
  failed_ =
      std::make_exception_ptr(Error(Code::kDevice, fmt::format("[gpu] kernel {}: {}", launch_.kernel, why)));
  _longjmp(back_, 1);
}

template <class Condition>
void Block::wait(Condition&& met) {
  while (!met()) {
    if (++idle_ > 2 * launch_.threads + 2) give_up("threads wait for others that never come");
    next();
  }
  idle_ = 0;
}

void Block::meet() {
  const uint32_t meeting = meetings_;
  if (++arrived_ == static_cast<int>(launch_.threads)) {
    arrived_ = 0;
    ++meetings_;
    idle_ = 0;
    return;
  }
  wait([&] { return meetings_ != meeting; });
}

const std::byte* Block::meet(Warp& warp, const void* mine, size_t bytes) {
  const uint32_t meeting = warp.meetings;
  auto& box = warp.box[meeting % 2];
  std::memcpy(box[standing().thread % kWarp], mine, bytes);
  if (++warp.arrived == kWarp) {
    warp.arrived = 0;
    ++warp.meetings;
    idle_ = 0;
  } else {
    wait([&] { return warp.meetings != meeting; });
  }
  return box[0];
}

void Block::begin(Fibre& fibre) {
  fibre.stack = std::make_unique<std::byte[]>(kStack);
  getcontext(&fibre.start);
  fibre.start.uc_stack.ss_sp = fibre.stack.get();
  fibre.start.uc_stack.ss_size = kStack;
  fibre.start.uc_link = nullptr;
  makecontext(&fibre.start, &Block::enter, 0);
}

void Block::prepare(const Extent& at) {
  const auto start = reinterpret_cast<uintptr_t>(memory_.data());
  auto* shared = reinterpret_cast<std::byte*>((start + kSharedAlign - 1) / kSharedAlign * kSharedAlign);
  std::memset(memory_.data(), 0xff, memory_.size());  // NaN: nothing may be read that was not written
  for (Warp& warp : warps_) warp = {};
  left_ = static_cast<int>(launch_.threads);
  arrived_ = 0;
  idle_ = 0;
  for (int i = 0; i < left_; ++i) {
    Fibre& f = fibres_[static_cast<size_t>(i)];
    f.copies.assign(1, {});
    f.done = false;
    f.standing = {
        i,        left_, at, launch_.grid, shared, launch_.shared, &warps_[static_cast<size_t>(i / kWarp)],
        &f.copies};
    if (!f.started) begin(f);
  }
}

void Block::run(const Extent& at) {
  prepare(at);
  running = this;
  if (!_setjmp(back_)) {
    current_ = order_ == Order::kForward ? 0 : static_cast<int>(launch_.threads) - 1;
    Fibre& first = fibres_[static_cast<size_t>(current_)];
    if (first.started) _longjmp(first.turn, 1);
    first.started = true;
    setcontext(&first.start);
  }
  if (failed_) std::rethrow_exception(failed_);
}

}  // namespace

Standing& here() { return running->standing(); }
void meet_block() { running->meet(); }
const std::byte* meet_warp(const void* mine, size_t bytes) {
  return running->meet(*here().warp, mine, bytes);
}

void wait_until(bool (*met)(const void* what), const void* what) {
  running->wait([&] { return met(what); });
}

void run_grid(Body body, const Launch& launch, Order order) {
  if (launch.threads == 0 || launch.threads % kWarp != 0 || launch.threads > 1024 || launch.grid.count() == 0)
    fail(Code::kDevice, "[gpu] kernel {}: {} blocks of {} threads", launch.kernel, launch.grid.count(),
         launch.threads);
  Block block(body, launch, order);
  for (uint32_t z = 0; z < launch.grid.z; ++z)
    for (uint32_t y = 0; y < launch.grid.y; ++y)
      for (uint32_t x = 0; x < launch.grid.x; ++x) block.run({x, y, z});
}

}  // namespace juno::gpu::host
