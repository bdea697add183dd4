// SPDX-License-Identifier: Apache-2.0
// For tests that compare bits: a hash that pins them, and distances between floats.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace juno::test {

// FNV-1a over the bytes of words, lowest byte first.
class Hash {
 public:
  void add(uint64_t word, int bytes) {
    for (int i = 0; i < bytes; ++i) state_ = (state_ ^ (word >> (8 * i) & 0xff)) * 0x100000001b3u;
  }
  void add(float x) { add(__builtin_bit_cast(uint32_t, x), 4); }
  void add(double x) { add(__builtin_bit_cast(uint64_t, x), 8); }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

// |got - want| in units of the last place of `want` as a T.
template <class T>
double ulps(T got, long double want) {
  const T near = std::fabs(static_cast<T>(want));
  const T ulp = std::nextafter(near, std::numeric_limits<T>::infinity()) - near;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / static_cast<long double>(ulp));
}

}  // namespace juno::test
