// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/gpu_device.h"

#include <algorithm>
#include <utility>

#include "backend/gpu/plan.h"
#include "backend/gpu/repack.h"
#include "ops/weight.h"

namespace juno::gpu {
namespace {

constexpr size_t kRawBytes = size_t{32} << 20;
constexpr int64_t kStrip = 64;  // rows: a piece begins where no strip of the layout is cut

// Only activations, indices and the cache are copied; weights are uploaded.
size_t tensor_bytes(const Tensor& x) {
  return static_cast<size_t>(x.shape.size()) * (x.dtype == DType::kF16 ? sizeof(uint16_t) : sizeof(float));
}

uint32_t format_id(const Tensor& weight) { return static_cast<uint32_t>(weight.dtype); }

}  // namespace

GpuDevice::~GpuDevice() {
  for (void* weight : weights_) runtime_->release(weight);
  runtime_->release(raw_);
}

Result<void*> GpuDevice::allocate(size_t bytes) {
  runtime_->release(std::exchange(raw_, nullptr));
  return runtime_->allocate(bytes);
}

Result<Tensor> GpuDevice::upload(const Tensor& host) {
  return guard([&] {
    const uint64_t plane = device_bytes(format_id(host), host.rows(), host.cols());
    weights_.reserve(weights_.size() + 1);
    Tensor weight = host;
    weight.data = take(runtime_->allocate(plane * static_cast<uint64_t>(host.shape.planes)));
    weights_.push_back(weight.data);
    for (int64_t p = 0; p < host.shape.planes; ++p)
      repack(ops::plane(host, p), static_cast<char*>(weight.data) + plane * static_cast<uint64_t>(p));
    return weight;
  });
}

// Piece by piece: to the device as it is, then into place by a kernel.
void GpuDevice::repack(const Tensor& host, void* to) {
  const uint64_t row = ops::row_bytes(host);
  if (ops::format_of(host).is_float)
    return runtime_->write(to, host.data, row * static_cast<uint64_t>(host.rows()));
  if (runtime_->on_host()) return repack_on_host(format_id(host), host.rows(), host.cols(), host.data, to);
  const int64_t most = std::max(kStrip, static_cast<int64_t>(kRawBytes / row) / kStrip * kStrip);
  if (row * kStrip > kRawBytes) fail(Code::kBadData, "[backend/gpu] a weight has rows of {} bytes", row);
  if (!raw_) raw_ = take(runtime_->allocate(kRawBytes));
  RepackArgs args{.from = static_cast<const uint8_t*>(raw_),
                  .to = {.data = static_cast<const uint8_t*>(to),
                         .format = format_id(host),
                         .rows = static_cast<int32_t>(host.rows()),
                         .cols = static_cast<int32_t>(host.cols())}};
  for (int64_t first = 0; first < host.rows(); first += most) {
    args.first = static_cast<int32_t>(first);
    args.count = static_cast<int32_t>(std::min(most, host.rows() - first));
    runtime_->write(raw_, static_cast<const char*>(host.data) + row * static_cast<uint64_t>(first),
                    row * static_cast<uint64_t>(args.count));
    runtime_->launch(plan(args));
  }
}

size_t GpuDevice::upload_bytes(const Tensor& host) const {
  return gpu::allocation_bytes(device_bytes(format_id(host), host.rows(), host.cols()) *
                               static_cast<uint64_t>(host.shape.planes));
}

size_t GpuDevice::own_bytes() const { return runtime_->on_host() ? 0 : gpu::allocation_bytes(kRawBytes); }

std::optional<ops::CardMemory> GpuDevice::memory() const {
  if (runtime_->on_host()) return {};
  return runtime_->memory();
}

void GpuDevice::write(const Tensor& to, const void* from) {
  runtime_->write(to.data, from, tensor_bytes(to));
}

void GpuDevice::read(void* to, const Tensor& from) { runtime_->read(to, from.data, tensor_bytes(from)); }

}  // namespace juno::gpu
