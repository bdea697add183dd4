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
    pool->holders_.assign(static_cast<size_t>(pages), 0);
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
    holders_[static_cast<size_t>(free_.back())] = 1;
    free_.pop_back();
  }
  return true;
}

void KvPool::hold(int32_t page) {
  assert(holders(page) > 0 && "a free page holds nothing to share");
  ++holders_[static_cast<size_t>(page)];
}

void KvPool::release(int32_t page) {
  assert(holders(page) > 0 && "a page is given back once by each holder");
  if (--holders_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void KvPool::release(std::vector<int32_t>& pages) {
  for (; !pages.empty(); pages.pop_back()) release(pages.back());
}

void KvPool::copy(int32_t from, int32_t to) {
  assert(holders(from) > 0 && holders(to) == 1 && "who writes a page holds it alone");
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

Result<void> KvPool::check(std::span<const int32_t> held) const {
  return guard([&] {
    std::vector<int> expected(holders_.size(), 0), times_free(holders_.size(), 0);
    for (int32_t page : held) ++expected.at(static_cast<size_t>(page));
    for (int32_t page : free_) ++times_free.at(static_cast<size_t>(page));
    for (size_t page = 0; page < holders_.size(); ++page) {
      if (holders_[page] != expected[page]) {
        fail(Code::kFailed, "[engine] page {} counts {} holders and has {}", page, holders_[page],
             expected[page]);
      }
      if (times_free[page] != (holders_[page] == 0)) {
        fail(Code::kFailed, "[engine] page {} with {} holders is {} times free", page, holders_[page],
             times_free[page]);
      }
    }
  });
}

}  // namespace juno::engine
