// SPDX-License-Identifier: Apache-2.0
// The pages that hold keys and values: taken from the device once, lent to sequences and to the cache of
// prefixes, counted to the byte.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "ops/batch.h"
#include "ops/device.h"

namespace juno::engine {

// A page is the same id in every layer: 64 positions of keys and values (docs/numerics.md §6).
class KvPool {
 public:
  // One entry of `layers` per layer. Fails when the device has no room, naming what was asked for.
  static Result<std::unique_ptr<KvPool>> make(ops::Device& device, std::span<const ops::KvShape> layers,
                                              int pages);
  // The same, each layer on its device.
  static Result<std::unique_ptr<KvPool>> make(std::vector<ops::Device*> devices,
                                              std::span<const ops::KvShape> layers, int pages);
  ~KvPool();
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  static size_t bytes_per_page(std::span<const ops::KvShape> layers);
  // Pages that hold this many positions.
  static int pages_for(int64_t positions);

  // Appends `count` page ids to `to`, each with one holder; false, and nothing done, when fewer are free.
  bool acquire(int count, std::vector<int32_t>& to);
  // One holder more. What they share of a page never changes; positions that no other holder knows of may
  // still be written by one of them.
  void hold(int32_t page);
  // One holder less; without any the page is free.
  void release(int32_t page);
  // The same for all of `pages`, which is emptied.
  void release(std::vector<int32_t>& pages);
  int holders(int32_t page) const { return holders_.at(static_cast<size_t>(page)); }

  // Copies a page, of all layers. Both are held.
  void copy(int32_t from, int32_t to);

  std::span<const ops::KvLayer> layers() const { return layers_; }
  int total() const { return static_cast<int>(holders_.size()); }
  int free() const { return static_cast<int>(free_.size()); }
  int used() const { return total() - free(); }
  size_t bytes() const { return bytes_per_page_ * holders_.size(); }
  size_t bytes_used() const { return bytes_per_page_ * static_cast<size_t>(used()); }

  // Every page is free once, or held as often as it stands in `held`. An error is a defect of this program.
  Result<void> check(std::span<const int32_t> held) const;

 private:
  explicit KvPool(std::vector<ops::Device*> devices) : devices_(std::move(devices)) {}

  std::vector<ops::Device*> devices_;  // of each layer
  std::vector<void*> memory_;          // of each layer, keys and values
  std::vector<ops::KvLayer> layers_;
  std::vector<int32_t> free_;  // the next page is at the back
  std::vector<int> holders_;   // [pages]
  size_t bytes_per_page_ = 0;
};

}  // namespace juno::engine
