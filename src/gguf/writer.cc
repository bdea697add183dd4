// SPDX-License-Identifier: Apache-2.0
#include "gguf/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/checked.h"
#include "base/utf8.h"
#include "gguf/reader.h"
#include "gguf/text.h"
#include "gguf/types.h"

namespace juno::gguf {
namespace {

constexpr std::string_view kAlignmentKey = "general.alignment";

template <class T>
void append_number(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void check_name(std::string_view kind, std::string_view name, size_t limit) {
  const auto control = [](char c) { return uint8_t(c) < 0x20 || c == 0x7f; };
  if (name.empty() || name.size() > limit || !is_utf8(name) || std::ranges::any_of(name, control))
    fail(Code::kUsage, "[gguf] \"{}\" cannot be a {}'s name", shown(name), kind);
}

}  // namespace

Result<Writer> Writer::create(const std::string& path, uint32_t alignment) {
  return guard([&] {
    if (!std::has_single_bit(alignment) || alignment < 8 || alignment > (1u << 20))
      fail(Code::kUsage, "[gguf] {}: an alignment of {} is no power of two from 8 to 2^20", path, alignment);
    Writer writer;
    writer.path_ = path;
    writer.alignment_ = alignment;
    for (int i = 0; writer.fd_ < 0; i++) {  // another writer may be at work beside this one
      writer.temporary_ = fmt::format("{}.{}.{}.part", path, ::getpid(), i);
      writer.fd_ = ::open(writer.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (writer.fd_ < 0 && (errno != EEXIST || i == 100))
        fail(Code::kFailed, "[gguf] cannot write {}: {}", writer.temporary_, std::strerror(errno));
    }
    take(writer.put_bytes(kAlignmentKey, ValueType::kU32,
                          {reinterpret_cast<const char*>(&alignment), sizeof alignment}));
    return writer;
  });
}

Writer::Writer(Writer&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      alignment_(other.alignment_),
      keys_(std::move(other.keys_)),
      tensors_(std::move(other.tensors_)),
      n_keys_(other.n_keys_),
      key_names_(std::move(other.key_names_)),
      tensor_names_(std::move(other.tensor_names_)),
      sizes_(std::move(other.sizes_)),
      next_offset_(other.next_offset_),
      head_written_(other.head_written_),
      tensor_(other.tensor_),
      in_tensor_(other.in_tensor_),
      at_(other.at_) {}

Writer::~Writer() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void Writer::check_declaring() const {
  if (head_written_)
    fail(Code::kUsage, "[gguf] {}: keys and tensors are declared before the first data", path_);
}

Result<void> Writer::put_bytes(std::string_view key, ValueType type, std::string_view bytes) {
  return guard([&] {
    check_declaring();
    check_name("key", key, 65535);
    if (n_keys_ == kMaxKeys) fail(Code::kUsage, "[gguf] {}: more than {} keys", path_, kMaxKeys);
    if (!key_names_.emplace(key).second)
      fail(Code::kUsage, "[gguf] {}: the key {} is given twice", path_, key);
    append_text(keys_, key);
    append_number(keys_, uint32_t(type));
    keys_ += bytes;
    n_keys_++;
  });
}

Result<void> Writer::put(std::string_view key, const Value& value) {
  std::string head;
  if (value.type == ValueType::kString) append_number(head, uint64_t(value.bytes.size()));
  if (value.type == ValueType::kArray) {
    append_number(head, uint32_t(value.item));
    append_number(head, value.count);
  }
  head.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  return put_bytes(key, value.type, head);
}

Result<void> Writer::declare(std::string_view name, uint32_t type, std::span<const uint64_t> dims) {
  return guard([&] {
    check_declaring();
    check_name("tensor", name, kMaxTensorName);
    const TensorType* format = tensor_type(type);
    if (!format || format->bytes == 0)
      fail(Code::kUsage, "[gguf] tensor {}: {} cannot be written", name, type_name(type));
    if (dims.empty() || dims.size() > kMaxDims || dims[0] % format->block != 0 ||
        std::ranges::count(dims, 0u) > 0)
      fail(Code::kUsage, "[gguf] tensor {}: {} cannot have the dimensions {}", name, format->name,
           fmt::join(dims, " × "));
    if (sizes_.size() == kMaxTensors)
      fail(Code::kUsage, "[gguf] {}: more than {} tensors", path_, kMaxTensors);
    if (tensor_names_.contains(std::string(name)))
      fail(Code::kUsage, "[gguf] {}: the tensor {} is given twice", path_, name);
    std::optional<uint64_t> bytes = checked_mul<uint64_t>(dims[0] / format->block, format->bytes);
    for (size_t i = 1; i < dims.size() && bytes; i++) bytes = checked_mul(*bytes, dims[i]);
    const auto end = bytes ? checked_add(next_offset_, *bytes) : std::nullopt;
    const auto padded = end ? checked_add(*end, (alignment_ - *end % alignment_) % alignment_) : std::nullopt;
    if (!padded)
      fail(Code::kUsage, "[gguf] tensor {}: the size {} does not fit 64 bits", name, fmt::join(dims, " × "));

    tensor_names_.emplace(name);
    append_text(tensors_, name);
    append_number(tensors_, uint32_t(dims.size()));
    for (uint64_t dim : dims) append_number(tensors_, dim);
    append_number(tensors_, type);
    append_number(tensors_, next_offset_);
    sizes_.push_back(*bytes);
    next_offset_ = *padded;
  });
}

Result<void> Writer::write(std::span<const uint8_t> bytes) {
  return guard([&] {
    if (!head_written_) write_head();
    while (!bytes.empty()) {
      if (tensor_ == sizes_.size())
        fail(Code::kUsage, "[gguf] {}: {} bytes more than the tensors have", path_, bytes.size());
      const size_t n = size_t(std::min<uint64_t>(bytes.size(), sizes_[tensor_] - in_tensor_));
      emit(bytes.first(n));
      bytes = bytes.subspan(n);
      in_tensor_ += n;
      if (in_tensor_ < sizes_[tensor_]) return;
      pad();
      tensor_++;
      in_tensor_ = 0;
    }
  });
}

Result<void> Writer::finish() {
  return guard([&] {
    if (!head_written_) write_head();
    if (tensor_ != sizes_.size())
      fail(Code::kUsage, "[gguf] {}: data was written for {} of {} tensors", path_, tensor_, sizes_.size());
    if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0)
      fail(Code::kFailed, "[gguf] cannot complete {}: {}", path_, std::strerror(errno));
    ::close(std::exchange(fd_, -1));
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;  // the file is there; only its name may not survive a power cut
    ::fsync(fd);
    ::close(fd);
  });
}

void Writer::write_head() {
  std::string head = "GGUF";
  append_number(head, uint32_t(3));
  append_number(head, uint64_t(sizes_.size()));
  append_number(head, n_keys_);
  for (std::string* part : {&head, &keys_, &tensors_}) emit(bytes_of(*part));
  pad();
  head_written_ = true;
}

void Writer::pad() {
  const std::string zeros((alignment_ - at_ % alignment_) % alignment_, '\0');
  emit(bytes_of(zeros));
}

void Writer::emit(std::span<const uint8_t> bytes) {
  if (fd_ < 0) fail(Code::kUsage, "[gguf] {} is finished already", path_);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(Code::kFailed, "[gguf] cannot write {}: {}", temporary_, std::strerror(errno));
    bytes = bytes.subspan(size_t(n));
    at_ += uint64_t(n);
  }
}

void Writer::append_text(std::string& out, std::string_view text) {
  append_number(out, uint64_t(text.size()));
  out += text;
}

}  // namespace juno::gguf
