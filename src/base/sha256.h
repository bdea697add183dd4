// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4): names a file by its bytes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace juno {

class Sha256 {
 public:
  void add(std::span<const uint8_t> bytes);
  // 64 hexadecimal digits; ends the message, so it is called once.
  std::string hex();

 private:
  void block(const uint8_t* from);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_{};  // bytes that do not fill a block yet
  uint64_t size_ = 0;               // bytes so far
};

}  // namespace juno
