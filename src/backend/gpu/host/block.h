// SPDX-License-Identifier: Apache-2.0
// A block of GPU threads on one CPU thread, fibres that take turns: the first warp that can go on does, so
// that each is as far ahead of the others as barriers allow.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <exception>
#include <memory>
#include <vector>

#include "backend/gpu/host/fibres.h"
#include "backend/gpu/host/weather.h"

namespace juno::gpu::host {

using Body = void (*)(const void* args);

class Block {
 public:
  Block(Body body, const Launch& launch, const Weather& weather);

  // All throw Error. begin() comes back when all that is left waits for the launches before this one;
  // finish() goes on when these are done, to the end. run() is for when they are done already.
  void begin(const Extent& at) { start(at, false); }
  void finish();
  void run(const Extent& at) { start(at, true); }

 private:
  friend Standing& here();
  friend void meet_block(int line);
  friend void meet_team(int team, int count, int line);
  friend const std::byte* meet_warp(const void* mine, size_t bytes, int line);
  friend void wait_until(bool (*met)(const void* what), const void* what);
  friend void wait_dependency();
  friend void send(Copies copies, void (*landed)(void* what), void* what);

  // A new fibre begins by setcontext; later turns go by _setjmp and _longjmp, which do not ask the kernel.
  struct Fibre {
    Standing standing;
    std::vector<Copies> copies;
    std::unique_ptr<std::byte[]> stack;
    ucontext_t start;
    jmp_buf turn;
    bool started = false, done = false;
    bool depended = false;  // has waited for the launches before
    bool (*met)(const void* what) = nullptr;
    const void* what = nullptr;
    bool ready() const { return !done && (!met || met(what)); }
  };
  struct Flight {
    Copies copies;
    void (*landed)(void* what);
    void* what;
  };

  static void begin(Fibre& fibre);
  static void enter();
  void start(const Extent& at, bool dependency);
  void live();
  void check_end();
  void go_on();
  void next();
  int ready_of(int warp) const;
  int ready() const;
  bool land_one();
  void leave();
  void switch_to(int fibre);
  [[noreturn]] void give_up(const std::string& why);
  Fibre& self() { return fibres_[static_cast<size_t>(current_)]; }
  template <class Condition>
  void wait(const Condition& met);
  void meet(Meeting& with, int count, int line);

  const Body body_;
  const Launch& launch_;
  const Weather weather_;
  const std::vector<int> order_;  // of warps
  std::vector<Fibre> fibres_;
  std::vector<Warp> warps_;
  std::vector<std::byte> memory_;
  std::byte* shared_ = nullptr;
  std::vector<Flight> flights_;
  jmp_buf back_;
  Meeting all_;
  std::array<Meeting, 6> teams_;  // as many as the device has names for
  int current_ = 0, left_ = 0;
  bool dependency_ = false;  // the launches before this one are done
  std::exception_ptr failed_;
};

}  // namespace juno::gpu::host
