// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_device.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ops/weight.h"

namespace juno::cpu {
namespace {

constexpr int kMostBlockBytes = 256;       // of any format
constexpr size_t kPagesAtOnce = 64 << 20;  // of addresses; what is not used takes no memory

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

const FormatKernels& CpuDevice::kernels_of(const Tensor& weight) const {
  return *std::find_if(
      kernels_.formats, kernels_.formats + kernels_.format_count,
      [&](const FormatKernels& f) { return f.gguf_id == static_cast<uint32_t>(weight.dtype); });
}

bool CpuDevice::turns(const Tensor& weight) const {
  const FormatKernels& own = kernels_of(weight);
  return turn_ && own.turn && weight.rows() % own.rows == 0;
}

size_t CpuDevice::upload_bytes(const Tensor& host) const {
  return turns(host) ? aligned(ops::weight_bytes(host)) : 0;
}

// Null when there is none.
std::byte* CpuDevice::room(size_t bytes) {
  if (pages_.empty() || pages_.back().bytes - pages_.back().used < bytes) {
    const size_t huge = HugePages::kSize, all = (std::max(bytes, kPagesAtOnce) + huge - 1) / huge * huge;
    pages_.reserve(pages_.size() + 1);
    std::byte* const data = memory_.map(all);
    if (!data) return nullptr;
    pages_.push_back({data, all, 0});
  }
  Pages& last = pages_.back();
  hold(bytes);
  return last.data + std::exchange(last.used, last.used + bytes);
}

Result<Tensor> CpuDevice::upload(const Tensor& host) {
  if (!turns(host)) return host;
  const FormatKernels& own = kernels_of(host);
  const size_t row = ops::row_bytes(host), panel = row * static_cast<size_t>(own.rows);
  std::byte* const to = room(upload_bytes(host));
  if (!to)
    return tl::unexpected(
        Error(Code::kDevice,
              fmt::format("[backend/cpu] the host has no {} bytes for a weight", upload_bytes(host))));
  const auto* from = static_cast<const uint8_t*>(host.data);
  const int panels = static_cast<int>(host.shape.planes * host.rows() / own.rows);
  pool_->parallel_for(panels, [&](int i, int) {
    own.turn(from + i * panel, static_cast<int64_t>(row), reinterpret_cast<uint8_t*>(to) + i * panel);
  });
  memory_.filled(pages_.back().used);
  return Tensor{to, host.dtype, host.shape};
}

bool CpuDevice::turned(const Tensor& weight) const {
  const auto* const data = static_cast<const std::byte*>(weight.data);
  return std::ranges::any_of(pages_,
                             [&](const Pages& p) { return data >= p.data && data < p.data + p.used; });
}

void CpuDevice::dequantise_row(const Tensor& weight, int64_t index, float* to) const {
  const quant::FormatInfo& format = ops::format_of(weight);
  const auto* const data = static_cast<const uint8_t*>(weight.data);
  const int64_t row = format.row_bytes(weight.cols());
  if (!turned(weight)) return format.dequantise_row(data + row * index, weight.cols(), to);
  const FormatKernels& own = kernels_of(weight);
  const int64_t n = format.block_elements, bytes = format.row_bytes(n);
  uint8_t block[kMostBlockBytes];
  assert(bytes <= kMostBlockBytes);
  const uint8_t* from = data + index / own.rows * own.rows * row;
  for (int64_t i = 0; i < weight.cols(); i += n, from += bytes * own.rows, to += n) {
    own.turn_back(from, static_cast<int>(index % own.rows), block);
    format.dequantise_row(block, n, to);
  }
}

}  // namespace juno::cpu
