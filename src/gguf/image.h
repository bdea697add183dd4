// SPDX-License-Identifier: Apache-2.0
// Image: the bytes of one GGUF file, wherever they are: a mapped file, an entry of a ZIP file, memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "base/mapped_file.h"

namespace juno::gguf {

class Image {
 public:
  static std::unique_ptr<Image> of_file(const std::string& path);
  static std::unique_ptr<Image> of_memory(std::span<const uint8_t> bytes, std::string name);

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  const uint8_t* data() const { return data_; }

  // A pointer to n bytes at offset that stay as they are whatever happens to the file. offset + n <= size().
  const uint8_t* at(uint64_t offset, uint64_t n) {
    if (offset + n > settled_) settle(offset + n);
    return data_ + offset;
  }

  // Copies a piece that need not stay. offset + into.size() <= size().
  void copy(uint64_t offset, std::span<uint8_t> into) const;

  // Makes the image this part of itself. A part that does not begin at a multiple of 8 is copied into memory,
  // since kernels need aligned data; returns whether it was.
  bool narrow(uint64_t begin, uint64_t size);

  // See MappedFile::forget; nothing where the bytes are not mapped from a file.
  void forget(uint64_t offset, uint64_t n) const {
    if (!file_ || owned_) return;
    file_.forget(begin_ + std::max(offset, settled_), begin_ + offset + n);
  }

  uint64_t file_bytes() const { return file_ ? file_.size() : size_; }
  Result<void> unchanged() const { return file_ ? file_.unchanged() : Result<void>{}; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  Image() = default;
  void settle(uint64_t end);

  std::string name_;
  MappedFile file_;
  std::unique_ptr<uint8_t, Free> owned_;
  uint64_t begin_ = 0;  // of the image in the file
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t settled_ = 0;  // bytes from the image's beginning that are private to this process
};

}  // namespace juno::gguf
