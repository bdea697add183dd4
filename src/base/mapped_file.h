// SPDX-License-Identifier: Apache-2.0
// MappedFile: a regular file, read only, in memory without being copied.
//
// A page of a mapped file that another process cuts off ends this one with SIGBUS. So what decides anything
// (headers, metadata) is taken with read() or detach(), which fail with an error instead; weights stay
// mapped, and whoever loads them asks unchanged() afterwards.
#pragma once
#include <cstdint>
#include <ctime>
#include <span>
#include <string>

#include "base/error.h"

namespace juno {

class MappedFile {
 public:
  // Errors: kNoInput for no such file, no permission, or something that is not a regular file (a FIFO is
  // refused, not waited for); kBadData for an empty file.
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    MappedFile(std::move(other)).swap(*this);
    return *this;
  }
  ~MappedFile();

  explicit operator bool() const { return data_ != nullptr; }
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Copies [offset, offset + into.size()) of the file. An error when the file has become shorter.
  Result<void> read(uint64_t offset, std::span<uint8_t> into) const;

  // Replaces the pages from `begin` (a multiple of kPage) up to the one that holds byte end − 1 by private
  // copies, at the same addresses: from now on they neither change nor fail.
  Result<void> detach(uint64_t begin, uint64_t end);
  static constexpr uint64_t kPage = 65536;  // no system that Juno runs on has larger ones

  // Whole pages within [begin, end) no longer count as this process's memory; who reads them again gets them
  // from the file. Not for what was detached.
  void forget(uint64_t begin, uint64_t end) const;

  // An error when the file was written to or resized since open().
  Result<void> unchanged() const;

 private:
  void swap(MappedFile& other) noexcept;

  std::string path_;
  int fd_ = -1;
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  timespec modified_{};
};

}  // namespace juno
