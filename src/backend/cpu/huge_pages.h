// SPDX-License-Identifier: Apache-2.0
// Huge pages for memory that is read from end to end, given after it was filled: to fill them so would keep a
// first token waiting for seconds, while small ones are there at once.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace juno::cpu {

class HugePages {
 public:
  static constexpr size_t kSize =
      2 << 20;  // of most systems; where they are larger, nothing is lost but speed
  static constexpr size_t kWorthIt = 64 << 20;  // bytes in all: fewer stay near a processor anyway

  // Zeroed small pages that begin where a huge one may, a multiple of kSize; null when there are none. They
  // go with this object.
  std::byte* map(size_t bytes);
  ~HugePages();

  // The first `bytes` of what map() returned last are filled. Once nothing was for a while, a thread gives
  // them huge pages, or asks the system to do so in its own time.
  void filled(size_t bytes);

 private:
  struct Pages {
    std::byte* data;
    size_t bytes, filled, huge;
  };
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Pages> pages_;
  size_t fillings_ = 0, filled_ = 0;
  std::jthread thread_;
};

}  // namespace juno::cpu
