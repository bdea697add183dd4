// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/host/block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace juno::gpu::host {
namespace {

constexpr size_t kStack = 128 * 1024;
constexpr size_t kSharedAlign = 128;
constexpr size_t kBehind = 256;      // bytes behind the shared memory, which stay as they are
constexpr std::byte kNothing{0xff};  // NaN as f32 and f16, -1 as an integer

thread_local Block* running = nullptr;

}  // namespace

Block::Block(Body body, const Launch& launch, const Weather& weather)
    : body_(body),
      launch_(launch),
      weather_(weather),
      order_(weather.warps(static_cast<int>(launch.threads / kWarp))),
      fibres_(launch.threads),
      warps_(launch.threads / kWarp),
      memory_(launch.shared + kSharedAlign + kBehind) {
  const auto start = reinterpret_cast<uintptr_t>(memory_.data());
  shared_ = reinterpret_cast<std::byte*>((start + kSharedAlign - 1) / kSharedAlign * kSharedAlign);
}

void Block::enter() { running->live(); }

// A fibre's whole life: one body a block.
void Block::live() {
  for (;;) {
    try {
      body_(launch_.args);
      check_end();
    } catch (...) {
      failed_ = std::current_exception();
    }
    if (failed_) _longjmp(back_, 1);
    self().done = true;
    if (--left_ == 0) leave();
    else next();
  }
}

// A kernel that does not wait may end before those before it, and then the one after it does not wait for
// them either.
void Block::check_end() {
  if (!self().depended) fail(Code::kDevice, "[backend/gpu] a thread never waits for the launches before");
  if (left_ > 1) return;
  if (!flights_.empty())
    fail(Code::kDevice, "[backend/gpu] a block ends while copies are on their way to it");
  const std::byte* const end = shared_ + launch_.shared;
  if (!std::all_of(end, end + kBehind, [](std::byte b) { return b == kNothing; }))
    fail(Code::kDevice, "[backend/gpu] a block writes behind its {} bytes of shared memory", launch_.shared);
}

// Back to whoever runs this block.
void Block::leave() {
  if (!_setjmp(self().turn)) _longjmp(back_, 1);
}

void Block::switch_to(int fibre) {
  Fibre& other = fibres_[static_cast<size_t>(fibre)];
  if (current_ == fibre) return;
  if (_setjmp(self().turn)) return;
  current_ = fibre;
  if (other.started) _longjmp(other.turn, 1);
  other.started = true;
  setcontext(&other.start);
}

int Block::ready_of(int warp) const {
  for (int i = 0; i < kWarp; ++i) {
    const int fibre = warp * kWarp + weather_.lane(i);
    if (fibres_[static_cast<size_t>(fibre)].ready()) return fibre;
  }
  return -1;
}

int Block::ready() const {
  if (const int fibre = ready_of(current_ / kWarp); fibre >= 0) return fibre;
  for (const int warp : order_)
    if (const int fibre = ready_of(warp); fibre >= 0) return fibre;
  return -1;
}

bool Block::land_one() {
  if (flights_.empty()) return false;
  const Flight flight = std::move(flights_.front());
  flights_.erase(flights_.begin());
  land(flight.copies);
  flight.landed(flight.what);
  return true;
}

// Another fibre's turn; comes back when it is this one's again.
void Block::next() {
  for (;;) {
    if (const int fibre = ready(); fibre >= 0) return switch_to(fibre);
    if (land_one()) continue;
    const bool depends = std::ranges::any_of(fibres_, [](const Fibre& f) { return !f.done && f.depended; });
    if (dependency_ || !depends) give_up("threads wait for others that never come");
    return leave();
  }
}

void Block::give_up(const std::string& why) {
  failed_ = std::make_exception_ptr(
      Error(Code::kDevice, fmt::format("[backend/gpu] kernel {}: {}", launch_.kernel, why)));
  _longjmp(back_, 1);
}

template <class Condition>
void Block::wait(const Condition& met) {
  if (met()) return;
  self().met = [](const void* what) { return (*static_cast<const Condition*>(what))(); };
  self().what = &met;
  next();
  self().met = nullptr;
}

void Block::meet(Meeting& with, int count, int line) {
  Warp& warp = *self().standing.warp;
  if (warp.arrived++ % kWarp == 0) warp.line = line;
  if (warp.line != line)
    give_up(fmt::format("lanes meet at different places, the lines {} and {}", warp.line, line));
  const uint32_t meeting = with.meetings;
  if (++with.arrived == count) {
    with.arrived = 0;
    ++with.meetings;
  } else {
    wait([&] { return with.meetings != meeting; });
  }
}

void Block::begin(Fibre& fibre) {
  fibre.stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
  getcontext(&fibre.start);
  fibre.start.uc_stack.ss_sp = fibre.stack.get();
  fibre.start.uc_stack.ss_size = kStack;
  fibre.start.uc_link = nullptr;
  makecontext(&fibre.start, &Block::enter, 0);
}

void Block::start(const Extent& at, bool dependency) {
  std::ranges::fill(memory_, kNothing);  // nothing may be read that was not written
  for (Warp& warp : warps_) warp = {};
  left_ = static_cast<int>(launch_.threads);
  all_ = {};
  teams_ = {};
  dependency_ = dependency;
  flights_.clear();
  for (int i = 0; i < left_; ++i) {
    Fibre& f = fibres_[static_cast<size_t>(i)];
    f.copies.assign(1, {});
    f.done = f.depended = false;
    f.standing = {.thread = i,
                  .threads = left_,
                  .block = at,
                  .grid = launch_.grid,
                  .shared = shared_,
                  .shared_bytes = launch_.shared,
                  .warp = &warps_[static_cast<size_t>(i / kWarp)],
                  .late = weather_.late(),
                  .copies = &f.copies};
    if (!f.started) begin(f);
  }
  go_on();
}

void Block::finish() {
  dependency_ = true;
  if (left_ > 0) go_on();
}

void Block::go_on() {
  running = this;
  if (!_setjmp(back_)) {
    current_ = order_.front() * kWarp;
    current_ = ready();
    if (self().started) _longjmp(self().turn, 1);
    self().started = true;
    setcontext(&self().start);
  }
  if (failed_) std::rethrow_exception(failed_);
}

Standing& here() { return running->self().standing; }
void meet_block(int line) { running->meet(running->all_, here().threads, line); }
void meet_team(int team, int count, int line) {
  running->meet(running->teams_.at(static_cast<size_t>(team)), count, line);
}
const std::byte* meet_warp(const void* mine, size_t bytes, int line) {
  Warp& warp = *here().warp;
  auto& box = warp.box[warp.meeting.meetings % 2];
  if (bytes > 0) std::memcpy(box[here().thread % kWarp], mine, bytes);
  running->meet(warp.meeting, kWarp, line);
  return box[0];
}
void wait_until(bool (*met)(const void* what), const void* what) {
  running->wait([&] { return met(what); });
}
void wait_dependency() {
  running->self().depended = true;
  running->wait([] { return running->dependency_; });
}
void send(Copies copies, void (*landed)(void* what), void* what) {
  running->flights_.push_back({std::move(copies), landed, what});
}
void land(const Copies& copies) {
  for (const Copy& c : copies) std::memcpy(c.to, c.from, c.bytes);
}

}  // namespace juno::gpu::host
