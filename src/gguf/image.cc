// SPDX-License-Identifier: Apache-2.0
#include "gguf/image.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace juno::gguf {

std::unique_ptr<Image> Image::of_file(const std::string& path) {
  std::unique_ptr<Image> image(new Image);
  image->name_ = path;
  image->file_ = take(MappedFile::open(path));
  image->data_ = image->file_.bytes().data();
  image->size_ = image->file_.size();
  return image;
}

std::unique_ptr<Image> Image::of_memory(std::span<const uint8_t> bytes, std::string name) {
  std::unique_ptr<Image> image(new Image);
  image->name_ = std::move(name);
  image->data_ = bytes.data();
  image->size_ = image->settled_ = bytes.size();
  return image;
}

void Image::copy(uint64_t offset, std::span<uint8_t> into) const {
  if (file_) {
    take(file_.read(begin_ + offset, into));
  } else if (!into.empty()) {
    std::memcpy(into.data(), data_ + offset, into.size());
  }
}

bool Image::narrow(uint64_t begin, uint64_t size) {
  const bool misaligned = begin % 8 != 0;
  if (misaligned) {
    owned_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, (size + 63) / 64 * 64)));
    if (!owned_) throw std::bad_alloc();
    copy(begin, {owned_.get(), size});
  }
  begin_ = begin;
  data_ = misaligned ? owned_.get() : data_ + begin;
  size_ = size;
  settled_ = misaligned || !file_ ? size : 0;
  return misaligned;
}

void Image::settle(uint64_t end) {
  constexpr uint64_t kPage = MappedFile::kPage;
  // Steps grow with what is settled already, so that a small head costs little and a large one few calls.
  const uint64_t step = std::clamp(settled_, kPage, 64 * kPage);
  const uint64_t from = settled_ == 0 ? begin_ / kPage * kPage : begin_ + settled_;
  const uint64_t until =
      std::min(file_.size(), (begin_ + std::max(end, settled_ + step) + kPage - 1) / kPage * kPage);
  take(file_.detach(from, until));
  settled_ = std::min(size_, until - begin_);
}

}  // namespace juno::gguf
