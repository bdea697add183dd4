// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_device.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ops/weight.h"

namespace juno::cpu {
namespace {

constexpr int kMostBlockBytes = 256;         // of any format
constexpr size_t kPagesAtOnce = 64 << 20;    // of addresses; what is not used takes no memory
constexpr size_t kTurnedTogether = 4 << 20;  // bytes that memory holds twice meanwhile

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
  if (pages_.empty() || pages_.back().memory.bytes() - pages_.back().used < bytes) {
    HugePages memory(std::max(bytes, kPagesAtOnce));
    if (!memory.data()) return nullptr;
    pages_.push_back({std::move(memory), 0});
  }
  Pages& last = pages_.back();
  hold(bytes);
  return last.memory.data() + std::exchange(last.used, last.used + bytes);
}

Result<Tensor> CpuDevice::upload(const Tensor& host) {
  if (!turns(host)) return host;
  std::byte* const to = room(upload_bytes(host));
  if (!to)
    return tl::unexpected(
        Error(Code::kDevice,
              fmt::format("[backend/cpu] the host has no {} bytes for a weight", upload_bytes(host))));
  if (!forget_) {
    turn(host, to);
    return Tensor{to, host.dtype, host.shape};
  }
  const auto* const last = static_cast<const std::byte*>(host.data) + ops::weight_bytes(host) - 1;
  if (const auto [at, is_new] = later_.try_emplace(last, Later{host, to, false}); is_new)
    waiting_.push_back(&at->second);
  return host;
}

// Some panels at a time, whose pages of the file are given back before the next.
void CpuDevice::turn(const Tensor& host, std::byte* to) {
  const FormatKernels& own = kernels_of(host);
  const auto row = static_cast<size_t>(ops::row_bytes(host)), panel = row * static_cast<size_t>(own.rows);
  const auto* from = static_cast<const uint8_t*>(host.data);
  const int panels = static_cast<int>(host.shape.planes * host.rows() / own.rows);
  const int together = static_cast<int>(std::max<size_t>(kTurnedTogether / panel, 1));
  for (int first = 0; first < panels; first += together) {
    const int count = std::min(together, panels - first);
    pool_->parallel_for(count, [&](int i, int) {
      const size_t at = static_cast<size_t>(first + i) * panel;
      own.turn(from + at, static_cast<int64_t>(row), reinterpret_cast<uint8_t*>(to) + at);
    });
    if (forget_) forget_(from, static_cast<size_t>(first + count) * panel);
  }
}

void CpuDevice::turn_waiting(std::chrono::nanoseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  while (!waiting_.empty() && Clock::now() - start < time) {
    Later& next = *waiting_.front();
    turn(next.host, next.to);
    next.turned = true;
    waiting_.pop_front();
  }
}

CpuDevice::Place CpuDevice::place_of(const Tensor& weight) const {
  const auto* const data = static_cast<const std::byte*>(weight.data);
  if (const auto at = later_.lower_bound(data); at != later_.end()) {
    const auto& [host, to, turned] = at->second;
    const auto* const first = static_cast<const std::byte*>(host.data);
    if (data >= first) return {turned ? to + (data - first) : data, turned};
  }
  return {data, std::ranges::any_of(pages_, [&](const Pages& p) {
            return data >= p.memory.data() && data < p.memory.data() + p.used;
          })};
}

void CpuDevice::dequantise_row(const Tensor& weight, int64_t index, float* to) const {
  const quant::FormatInfo& format = ops::format_of(weight);
  const Place place = place_of(weight);
  const auto* const data = static_cast<const uint8_t*>(place.data);
  const int64_t row = format.row_bytes(weight.cols());
  if (!place.turned) return format.dequantise_row(data + row * index, weight.cols(), to);
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
