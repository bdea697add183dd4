// SPDX-License-Identifier: Apache-2.0
// Memory of one forward pass, handed out by moving a pointer. Short-lived values grow from the front and are
// freed together by rewind(); what lives for the whole pass grows from the back.
#pragma once
#include <cstddef>

namespace juno {

class Arena {
 public:
  static constexpr size_t kAlign = 64;  // a cache line, and the widest load

  // With nothing behind it: hands out addresses that are distinct but must not be followed, to find out how
  // much a pass needs.
  void measure();
  void adopt(void* memory, size_t bytes);

  // Both fail with Code::kFailed when the arena is full; neither ever grows it.
  void* take(size_t bytes);  // until rewind() below it, or reset()
  void* keep(size_t bytes);  // until reset()

  size_t mark() const { return front_; }
  void rewind(size_t mark) { front_ = mark; }
  void reset() { front_ = back_ = 0; }

  bool measuring() const { return measuring_; }
  size_t capacity() const { return capacity_; }
  size_t peak() const { return peak_; }  // the most in use at once since measure() or adopt()

 private:
  size_t claim(size_t bytes);

  char* base_ = nullptr;
  size_t capacity_ = 0, front_ = 0, back_ = 0, peak_ = 0;
  bool measuring_ = false;
};

}  // namespace juno
