// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/repack.h"

#include <cstring>

#include "backend/gpu/kernels/rows.h"

namespace juno::gpu {
namespace {

template <class F>
uint64_t bytes_of(int64_t rows, int64_t cols) {
  if constexpr (quant::FloatFormat<F>)
    return round_up(static_cast<uint64_t>(rows * cols) * sizeof(typename F::Block), 256);
  else return plane_offset<F>(kPlaneCount<F>, rows, cols);
}

template <class F>
void repack_all(int64_t rows, int64_t cols, const void* from, void* to) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  if constexpr (quant::FloatFormat<F>) {
    std::memcpy(to, from, static_cast<size_t>(rows * cols) * sizeof(typename F::Block));
  } else {
    const Weight weight{static_cast<uint8_t*>(to), F::gguf_id, static_cast<int32_t>(rows),
                        static_cast<int32_t>(cols), 0};
    const int64_t blocks = cols / F::block_size;
    for (int64_t i = 0; i < rows * blocks; ++i)
      repack_block<F>(bytes + i * static_cast<int64_t>(sizeof(typename F::Block)), weight, i / blocks,
                      static_cast<int>(i % blocks));
  }
}

template <class... Fs>
uint64_t any_bytes(uint32_t format, int64_t rows, int64_t cols, quant::List<Fs...>) {
  uint64_t bytes = 0;
  ((Fs::gguf_id == format ? void(bytes = bytes_of<Fs>(rows, cols)) : void()), ...);
  return bytes;
}
template <class... Fs>
void any_repack(const Weight& w, const void* from, void* to, quant::List<Fs...>) {
  ((Fs::gguf_id == w.format ? repack_all<Fs>(w.rows, w.cols, from, to) : void()), ...);
}

}  // namespace

uint64_t device_bytes(uint32_t format, int64_t rows, int64_t cols) {
  return any_bytes(format, rows, cols, quant::Formats{});
}
void repack_on_host(uint32_t format, int64_t rows, int64_t cols, const void* from, void* to) {
  any_repack({nullptr, format, static_cast<int32_t>(rows), static_cast<int32_t>(cols), 0}, from, to,
             quant::Formats{});
}

}  // namespace juno::gpu
