// SPDX-License-Identifier: Apache-2.0
// What this machine does at most, measured: what the speed of a model is held against.
#pragma once
#include <cstddef>
#include <string_view>

namespace juno::cpu {

struct Rates {
  double read = 0;          // bytes a second that all threads together read from memory
  double multiply_add = 0;  // 8-bit products, each added to a sum, a second, of all threads
  size_t buffer = 0;        // bytes that were read over and over
};

// The best of several passes, about a second in all. `isa` is a name of isas() that this processor has.
// `memory`: bytes that may be taken for the buffer, which is four times the last cache where they allow it.
// Throws Error.
Rates measure_rates(std::string_view isa, int threads, size_t memory);

}  // namespace juno::cpu
