// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace juno::engine {
namespace {

class HostDevice final : public ops::Device {
 public:
  Result<void*> allocate(size_t bytes) override {
    if (bytes > limit) return tl::unexpected(Error(Code::kDevice, "[test] no memory"));
    allocated += bytes;
    ++blocks;
    return std::calloc(1, bytes);
  }
  void release(void* memory) override {
    --blocks;
    std::free(memory);
  }
  Result<Tensor> upload(const Tensor& host) override { return host; }
  void write(const Tensor&, const void*) override {}
  void read(void*, const Tensor&) override {}

  size_t allocated = 0, limit = size_t{1} << 30;
  int blocks = 0;
};

const std::vector<ops::KvShape> kLayers = {{2, 64, 64}, {1, 128, 96}};

TEST(KvPool, CountsEveryByte) {
  HostDevice device;
  {
    auto pool = KvPool::make(device, kLayers, 5);
    ASSERT_TRUE(pool) << pool.error().message;
    const size_t page = 64 * 2 * (2 * (64 + 64) + 1 * (128 + 96));
    EXPECT_EQ(KvPool::bytes_per_page(kLayers), page);
    EXPECT_EQ((*pool)->bytes(), 5 * page);
    EXPECT_EQ(device.allocated, 5 * page);
    EXPECT_EQ((*pool)->bytes_used(), 0u);
    std::vector<int32_t> pages;
    ASSERT_TRUE((*pool)->acquire(3, pages));
    EXPECT_EQ((*pool)->bytes_used(), 3 * page);
    (*pool)->release(pages);
  }
  EXPECT_EQ(device.blocks, 0) << "all memory went back to the device";
}

TEST(KvPool, ShapesAreThoseOfTheBatch) {
  HostDevice device;
  auto pool = KvPool::make(device, kLayers, 5);
  const auto layers = (*pool)->layers();
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[1].keys.shape, (Shape{.planes = 5, .rows = 64, .cols = 128}));
  EXPECT_EQ(layers[1].values.shape, (Shape{.planes = 5, .rows = 64, .cols = 96}));
  EXPECT_EQ(layers[0].keys.shape, (Shape{.planes = 5, .rows = 128, .cols = 64}));
  EXPECT_EQ(layers[0].keys.dtype, DType::kF16);
}

TEST(KvPool, LendsEachPageOnce) {
  HostDevice device;
  auto pool = KvPool::make(device, kLayers, 8);
  std::vector<int32_t> a, b;
  ASSERT_TRUE((*pool)->acquire(5, a));
  EXPECT_FALSE((*pool)->acquire(4, b));
  EXPECT_TRUE(b.empty()) << "a refusal lends nothing";
  ASSERT_TRUE((*pool)->acquire(3, b));
  std::set<int32_t> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  EXPECT_EQ(all.size(), 8u);
  EXPECT_EQ(*all.begin(), 0);
  EXPECT_EQ(*all.rbegin(), 7);
  (*pool)->release(a);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ((*pool)->used(), 3);
  EXPECT_TRUE((*pool)->check(b));
  (*pool)->release(b);
  EXPECT_TRUE((*pool)->check({}));
}

TEST(KvPool, APageIsFreeWhenItsLastHolderIsGone) {
  HostDevice device;
  auto pool = KvPool::make(device, kLayers, 4);
  std::vector<int32_t> pages;
  ASSERT_TRUE((*pool)->acquire(2, pages));
  const int32_t shared = pages[1];
  (*pool)->hold(shared);
  EXPECT_EQ((*pool)->holders(shared), 2);
  (*pool)->release(pages);
  EXPECT_EQ((*pool)->used(), 1);
  EXPECT_EQ((*pool)->holders(shared), 1);
  (*pool)->release(shared);
  EXPECT_EQ((*pool)->used(), 0);
}

TEST(KvPool, SaysWhoseCountIsWrong) {
  HostDevice device;
  auto pool = KvPool::make(device, kLayers, 4);
  std::vector<int32_t> pages;
  ASSERT_TRUE((*pool)->acquire(2, pages));
  EXPECT_TRUE((*pool)->check(pages));
  EXPECT_FALSE((*pool)->check({})) << "both are lost";
  EXPECT_FALSE((*pool)->check(std::vector<int32_t>{pages[0], pages[1], pages[1]})) << "one holder too many";
  EXPECT_FALSE((*pool)->check(std::vector<int32_t>{pages[0], 3})) << "a free page is held";
}

TEST(KvPool, NeedsAPageForEachBegunRunOf64) {
  EXPECT_EQ(KvPool::pages_for(0), 0);
  EXPECT_EQ(KvPool::pages_for(1), 1);
  EXPECT_EQ(KvPool::pages_for(64), 1);
  EXPECT_EQ(KvPool::pages_for(65), 2);
}

TEST(KvPool, SaysWhatTheDeviceCouldNotGive) {
  HostDevice device;
  device.limit = 1000;
  auto pool = KvPool::make(device, kLayers, 5);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code, Code::kDevice);
  EXPECT_NE(pool.error().message.find(std::to_string(5 * KvPool::bytes_per_page(kLayers))),
            std::string::npos);
  EXPECT_EQ(device.blocks, 0);
}

TEST(KvPool, RefusesSizesThatDoNotFit) {
  HostDevice device;
  EXPECT_FALSE(KvPool::make(device, kLayers, 0));
  const std::vector<ops::KvShape> huge(1000, {1 << 12, 1 << 12, 1 << 12});
  EXPECT_FALSE(KvPool::make(device, huge, 1 << 30));
}

}  // namespace
}  // namespace juno::engine
