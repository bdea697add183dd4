// SPDX-License-Identifier: Apache-2.0
// Page ids are handed out lowest first from a fresh pool, last returned first later on.
#include "engine/kv_pool.h"

#include "base/checked.h"

namespace juno::engine {
namespace {

constexpr size_t kValueBytes = 2;  // f16

size_t page_bytes(int heads, int dim) { return size_t{ops::kPagePositions} * heads * dim * kValueBytes; }

}  // namespace

size_t KvPool::bytes_per_page(std::span<const ops::KvShape> layers) {
  size_t bytes = 0;
  for (const ops::KvShape& l : layers)
    bytes += page_bytes(l.kv_heads, l.key_dim) + page_bytes(l.kv_heads, l.value_dim);
  return bytes;
}

int KvPool::pages_for(int64_t positions) {
  return static_cast<int>((positions + ops::kPagePositions - 1) / ops::kPagePositions);
}

Result<std::unique_ptr<KvPool>> KvPool::make(ops::Device& device, std::span<const ops::KvShape> layers,
                                             int pages) {
  return make(std::vector<ops::Device*>(layers.size(), &device), layers, pages);
}

Result<std::unique_ptr<KvPool>> KvPool::make(std::vector<ops::Device*> devices,
                                             std::span<const ops::KvShape> layers, int pages) {
  return guard([&] {
    assert(devices.size() == layers.size());
    std::unique_ptr<KvPool> pool(new KvPool(std::move(devices)));
    pool->memory_.reserve(2 * layers.size());
    pool->bytes_per_page_ = bytes_per_page(layers);
    const auto total = checked_mul(pool->bytes_per_page_, static_cast<size_t>(pages));
    if (pages < 1 || !total) fail(Code::kUsage, "[engine] a KV cache of {} pages cannot be", pages);
    const auto tensor = [&](int heads, int dim) -> Tensor {  // [pages, heads*64, dim]
      Result<void*> memory =
          pool->devices_[pool->layers_.size()]->allocate(page_bytes(heads, dim) * static_cast<size_t>(pages));
      if (!memory) {
        fail(memory.error().code, "[engine] the KV cache needs {} bytes for {} positions: {}", *total,
             int64_t{pages} * ops::kPagePositions, memory.error().message);
      }
      pool->memory_.push_back(*memory);
      return {
          *memory, DType::kF16, {.planes = pages, .rows = int64_t{heads} * ops::kPagePositions, .cols = dim}};
    };
    for (const ops::KvShape& l : layers) {
      const Tensor keys = tensor(l.kv_heads, l.key_dim);
      pool->layers_.push_back({keys, tensor(l.kv_heads, l.value_dim)});
    }
    pool->lent_.assign(static_cast<size_t>(pages), false);
    pool->free_.reserve(static_cast<size_t>(pages));
    for (int32_t page = pages - 1; page >= 0; --page) pool->free_.push_back(page);
    return pool;
  });
}

KvPool::~KvPool() {
  for (size_t i = 0; i < memory_.size(); ++i) devices_[i / 2]->release(memory_[i]);
}

bool KvPool::acquire(int count, std::vector<int32_t>& to) {
  if (count > free()) return false;
  for (int i = 0; i < count; ++i) {
    to.push_back(free_.back());
    lent_[free_.back()] = true;
    free_.pop_back();
  }
  return true;
}

void KvPool::release(std::vector<int32_t>& pages, size_t from) {
  while (pages.size() > from) {
    const int32_t page = pages.back();
    pages.pop_back();
    assert(lent_.at(page) && "a page is given back once, by its holder");
    lent_[page] = false;
    free_.push_back(page);
  }
}

void KvPool::copy(int32_t from, int32_t to) {
  assert(lent_.at(from) && lent_.at(to) && "both pages belong to the caller");
  std::vector<std::byte> held;
  const auto move = [&](ops::Device& device, const Tensor& all) {  // [pages, heads*64, dim]
    const size_t bytes = static_cast<size_t>(all.rows() * all.cols()) * kValueBytes;
    const auto page = [&](int32_t index) {
      Tensor one = all;
      one.shape.planes = 1;
      one.data = static_cast<std::byte*>(all.data) + bytes * static_cast<size_t>(index);
      return one;
    };
    held.resize(bytes);
    device.read(held.data(), page(from));
    device.write(page(to), held.data());
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    move(*devices_[i], layers_[i].keys);
    move(*devices_[i], layers_[i].values);
  }
}

Result<void> KvPool::check() const {
  return guard([&] {
    std::vector<bool> seen(lent_.size(), false);
    for (int32_t page : free_) {
      if (page < 0 || page >= total())
        fail(Code::kFailed, "[engine] page {} of {} is in the free list", page, total());
      if (seen[page]) fail(Code::kFailed, "[engine] page {} is free twice", page);
      if (lent_[page]) fail(Code::kFailed, "[engine] page {} is both free and lent", page);
      seen[page] = true;
    }
    for (int32_t page = 0; page < total(); ++page) {
      if (!seen[page] && !lent_[page]) fail(Code::kFailed, "[engine] page {} is lost", page);
    }
  });
}

Result<void> KvPool::check_idle(int kept) const {
  return guard([&] {
    take(check());
    if (used() != kept) fail(Code::kFailed, "[engine] {} pages are lent while idle, not {}", used(), kept);
  });
}

}  // namespace juno::engine
