// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace juno {
namespace {

void check_kind(const std::string& path, mode_t mode) {
  if (S_ISDIR(mode)) fail(Code::kNoInput, "[base] {} is a directory, not a file", path);
  if (!S_ISREG(mode))
    fail(Code::kNoInput, "[base] {} is not a regular file (a pipe, socket or device)", path);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  return guard([&] {
    MappedFile file;
    file.path_ = path;
    file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file.fd_ < 0) fail(Code::kNoInput, "[base] cannot open {}: {}", path, std::strerror(errno));
    struct stat state {};
    if (::fstat(file.fd_, &state) != 0)
      fail(Code::kNoInput, "[base] cannot examine {}: {}", path, std::strerror(errno));
    check_kind(path, state.st_mode);
    if (state.st_size == 0) fail(Code::kBadData, "[base] {} is empty", path);
    file.modified_ = state.st_mtim;
    void* place = ::mmap(nullptr, size_t(state.st_size), PROT_READ, MAP_PRIVATE, file.fd_, 0);
    if (place == MAP_FAILED) fail(Code::kNoInput, "[base] cannot map {}: {}", path, std::strerror(errno));
    file.data_ = static_cast<uint8_t*>(place);
    file.size_ = uint64_t(state.st_size);
    return file;
  });
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
  if (fd_ >= 0) ::close(fd_);
}

Result<void> MappedFile::read(uint64_t offset, std::span<uint8_t> into) const {
  return guard([&] {
    while (!into.empty()) {
      const ssize_t got = ::pread(fd_, into.data(), into.size(), off_t(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(Code::kNoInput, "[base] cannot read {}: {}", path_, std::strerror(errno));
      if (got == 0)
        fail(Code::kBadData, "[base] {} became shorter while it was read: it had {} bytes", path_, size_);
      into = into.subspan(size_t(got));
      offset += uint64_t(got);
    }
  });
}

Result<void> MappedFile::detach(uint64_t begin, uint64_t end) {
  return guard([&] {
    end = std::min(size_, (end + kPage - 1) / kPage * kPage);
    if (begin % kPage != 0 || begin >= end)
      fail(Code::kFailed, "[base] detach: no pages from {} to {}", begin, end);
    void* place = ::mmap(data_ + begin, size_t(end - begin), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
    if (place == MAP_FAILED) throw std::bad_alloc();
    take(read(begin, {data_ + begin, size_t(end - begin)}));
  });
}

void MappedFile::forget(uint64_t begin, uint64_t end) const {
  begin = (begin + kPage - 1) / kPage * kPage;
  end = end / kPage * kPage;
  if (begin < end) ::madvise(data_ + begin, size_t(end - begin), MADV_DONTNEED);
}

Result<void> MappedFile::unchanged() const {
  return guard([&] {
    struct stat now {};
    if (::fstat(fd_, &now) != 0)
      fail(Code::kNoInput, "[base] cannot examine {}: {}", path_, std::strerror(errno));
    if (uint64_t(now.st_size) != size_)
      fail(Code::kBadData, "[base] {} changed while it was read: it had {} bytes and now has {}", path_,
           size_, now.st_size);
    if (now.st_mtim.tv_sec != modified_.tv_sec || now.st_mtim.tv_nsec != modified_.tv_nsec)
      fail(Code::kBadData, "[base] {} changed while it was read: it was written to", path_);
  });
}

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(modified_, other.modified_);
}

}  // namespace juno
