// SPDX-License-Identifier: Apache-2.0
// The compiled kernels inside this program: what nvcc made of each *.cu here (kernels.cmake), or why there
// are none.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace juno::gpu::cuda {

struct KernelImage {
  std::span<const uint8_t> bytes;   // fat binaries one after another: PTX and machine code, compressed
  std::span<const uint32_t> sizes;  // of each
  std::string_view sha256;          // of `bytes`, as the build saw it
  std::string_view sources;         // SHA-256 of the text that was compiled
  std::string_view missing;         // why there are no kernels; empty when there are
};

const KernelImage& kernel_image();

}  // namespace juno::gpu::cuda
