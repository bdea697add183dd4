// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/huge_pages.h"

#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <system_error>

namespace juno::cpu {
namespace {

constexpr std::chrono::milliseconds kQuiet{300};  // without a filling, loading has ended
constexpr int kCollapse = 25;                     // MADV_COLLAPSE, since Linux 6.1

size_t up(size_t bytes) { return (bytes + HugePages::kSize - 1) / HugePages::kSize * HugePages::kSize; }

void collapse(std::byte* page) {
  if (::madvise(page, HugePages::kSize, kCollapse) != 0) ::madvise(page, HugePages::kSize, MADV_HUGEPAGE);
}

}  // namespace

std::byte* HugePages::map(size_t bytes) {
  const std::lock_guard lock(mutex_);
  pages_.reserve(pages_.size() + 1);
  const size_t room = bytes + kSize;
  void* const raw = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(raw), first = up(start), end = first + bytes;
  if (first > start) ::munmap(raw, first - start);
  if (start + room > end) ::munmap(reinterpret_cast<void*>(end), start + room - end);
  pages_.push_back({reinterpret_cast<std::byte*>(first), bytes, 0, 0});
  return pages_.back().data;
}

HugePages::~HugePages() {
  thread_ = {};
  for (const Pages& p : pages_) ::munmap(p.data, p.bytes);
}

void HugePages::filled(size_t bytes) {
  const std::lock_guard lock(mutex_);
  filled_ += bytes - pages_.back().filled;
  pages_.back().filled = bytes;
  ++fillings_;
  if (!thread_.joinable() && filled_ >= kWorthIt) {
    try {
      thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    } catch (const std::system_error&) {
      return;  // small pages are slower, not wrong
    }
  }
  changed_.notify_one();
}

void HugePages::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (size_t seen = 0; !stop.stop_requested();) {
    if (!changed_.wait(lock, stop, [&] { return fillings_ != seen; })) return;
    do seen = fillings_;
    while (changed_.wait_for(lock, stop, kQuiet, [&] { return fillings_ != seen; }));
    for (size_t i = 0; i < pages_.size(); ++i) {
      while (!stop.stop_requested() && pages_[i].huge < pages_[i].filled) {
        std::byte* const page = pages_[i].data + pages_[i].huge;
        pages_[i].huge += kSize;
        lock.unlock();
        collapse(page);
        lock.lock();
      }
    }
  }
}

}  // namespace juno::cpu
