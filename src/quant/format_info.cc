// SPDX-License-Identifier: Apache-2.0
#include "quant/format_info.h"

#include <array>

#include "quant/dot.h"
#include "quant/formats.h"

namespace juno::quant {
namespace {

template <class F>
const typename F::Block* blocks(const void* w) {
  return static_cast<const typename F::Block*>(w);
}

template <class F>
constexpr FormatInfo describe() {
  FormatInfo info = {};
  info.name = F::name;
  info.gguf_id = F::gguf_id;
  info.block_elements = F::block_size;
  info.block_bytes = sizeof(typename F::Block);
  info.is_float = FloatFormat<F>;
  info.has_min = HasMin<F>;
  info.dequantise_row = [](const void* w, int64_t n, float* y) { dequantise_row<F>(blocks<F>(w), n, y); };
  if constexpr (Quantisable<F>)
    info.quantise_row = [](const float* x, int64_t n, void* w) {
      quantise_row<F>(x, n, static_cast<typename F::Block*>(w));
    };
  info.dot_groups = [](const void* w, const ActivationRow& x, int begin, int end) {
    return dot_groups<F>(blocks<F>(w), x, begin, end);
  };
  return info;
}

template <class... Fs>
constexpr auto describe_all(List<Fs...>) {
  return std::array{describe<Fs>()...};
}

constexpr auto kFormats = describe_all(Formats{});

}  // namespace

std::span<const FormatInfo> formats() { return kFormats; }

const FormatInfo* find_format(uint32_t gguf_id) {
  for (const FormatInfo& info : kFormats)
    if (info.gguf_id == gguf_id) return &info;
  return nullptr;
}

}  // namespace juno::quant
