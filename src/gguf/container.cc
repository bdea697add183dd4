// SPDX-License-Identifier: Apache-2.0
// ZIP records are those of PKWARE's APPNOTE 6.3, sections 4.3.7 (local header), 4.3.12 (central directory),
// 4.3.14 and 4.3.15 (ZIP64 end and its locator), 4.3.16 (end).
#include "gguf/container.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "gguf/text.h"

namespace juno::gguf {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr uint64_t kMaxComment = 65535;
constexpr uint64_t kMaxDirectory = uint64_t(1) << 23;  // 180,000 entries; a llamafile has some hundred

template <class T>
T stored(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string_view text(const uint8_t* at, size_t n) { return {reinterpret_cast<const char*>(at), n}; }

std::vector<uint8_t> piece(const Image& image, uint64_t offset, uint64_t n) {
  std::vector<uint8_t> bytes(n);
  image.copy(offset, bytes);
  return bytes;
}

bool has_record(const Image& image, uint64_t offset, uint64_t size, uint32_t signature) {
  if (size < 4 || offset > image.size() || image.size() - offset < size) return false;
  return stored<uint32_t>(piece(image, offset, 4).data()) == signature;
}

struct Directory {
  uint64_t begin = 0, size = 0;
  uint64_t shift = 0;  // of every offset, when something was put in front of a finished ZIP file
};

struct Entry {
  std::string_view name;
  uint16_t flags = 0, method = 0;
  uint64_t size = 0, packed = 0, offset = 0;
};

// Where the record that ends a ZIP file begins.
std::optional<uint64_t> find_end(const Image& image) {
  if (image.size() < kEndSize) return std::nullopt;
  const uint64_t n = std::min(image.size(), kEndSize + kMaxComment);
  const std::vector<uint8_t> tail = piece(image, image.size() - n, n);
  for (uint64_t at = n - kEndSize + 1; at-- > 0;) {
    const uint8_t* record = tail.data() + at;
    if (stored<uint32_t>(record) == kEnd && at + kEndSize + stored<uint16_t>(record + 20) == n)
      return image.size() - n + at;
  }
  return std::nullopt;
}

Directory find_directory(const Image& image, uint64_t end) {
  Directory directory;
  const std::vector<uint8_t> record = piece(image, end, kEndSize);
  directory.size = stored<uint32_t>(&record[12]);
  directory.begin = stored<uint32_t>(&record[16]);
  if (end >= kLocator64Size && has_record(image, end - kLocator64Size, kLocator64Size, kLocator64)) {
    const uint64_t locator = end - kLocator64Size;
    end = stored<uint64_t>(piece(image, locator, kLocator64Size).data() + 8);
    if (!has_record(image, end, kEnd64Size, kEnd64) && locator >= kEnd64Size) end = locator - kEnd64Size;
    if (!has_record(image, end, kEnd64Size, kEnd64))
      fail(Code::kBadData, "[gguf] {}: the ZIP64 record at the end of the file is damaged", image.name());
    const std::vector<uint8_t> large = piece(image, end, kEnd64Size);
    directory.size = stored<uint64_t>(&large[40]);
    directory.begin = stored<uint64_t>(&large[48]);
  }
  if (directory.size > std::min(end, kMaxDirectory))
    fail(Code::kBadData, "[gguf] {}: the ZIP directory's size is {} bytes, more than {}", image.name(),
         directory.size, std::min(end, kMaxDirectory));
  if (!has_record(image, directory.begin, directory.size, kCentral) &&
      directory.begin <= end - directory.size) {
    directory.shift = end - directory.size - directory.begin;
    directory.begin += directory.shift;
  }
  if (directory.size < kCentralSize || !has_record(image, directory.begin, directory.size, kCentral))
    fail(Code::kBadData, "[gguf] {}: the ZIP directory is not where the end of the file says", image.name());
  return directory;
}

// The sizes and the offset that did not fit 32 bits: in this order, only those that did not.
void widen(Entry& entry, std::span<const uint8_t> extra) {
  while (extra.size() >= 4) {
    const uint16_t id = stored<uint16_t>(&extra[0]), n = stored<uint16_t>(&extra[2]);
    std::span<const uint8_t> field = extra.subspan(4);
    if (n > field.size()) return;
    extra = field.subspan(n);
    field = field.first(n);
    if (id != 1) continue;
    for (uint64_t* value : {&entry.size, &entry.packed, &entry.offset}) {
      if (*value != UINT32_MAX || field.size() < 8) continue;
      *value = stored<uint64_t>(field.data());
      field = field.subspan(8);
    }
  }
}

// The next entry of a central directory, nothing at its end or where it makes no sense.
std::optional<Entry> next(std::span<const uint8_t>& left) {
  if (left.size() < kCentralSize || stored<uint32_t>(&left[0]) != kCentral) return std::nullopt;
  const uint16_t name = stored<uint16_t>(&left[28]), extra = stored<uint16_t>(&left[30]);
  const size_t whole = kCentralSize + name + extra + stored<uint16_t>(&left[32]);
  if (whole > left.size()) return std::nullopt;
  Entry entry{.name = text(left.data() + kCentralSize, name),
              .flags = stored<uint16_t>(&left[8]),
              .method = stored<uint16_t>(&left[10]),
              .size = stored<uint32_t>(&left[24]),
              .packed = stored<uint32_t>(&left[20]),
              .offset = stored<uint32_t>(&left[42])};
  widen(entry, left.subspan(kCentralSize + name, extra));
  left = left.subspan(whole);
  return entry;
}

void narrow_to(Image& image, const Entry& entry, uint64_t shift, const Log& log) {
  const std::string name = shown(entry.name);
  if (entry.flags & 1) fail(Code::kBadData, "[gguf] {}: the ZIP entry {} is encrypted", image.name(), name);
  if (entry.method != 0 || entry.packed != entry.size)
    fail(Code::kBadData,
         "[gguf] {}: the ZIP entry {} is compressed (method {}); only a stored one can be mapped",
         image.name(), name, entry.method);
  uint64_t begin = entry.offset;
  if (begin > image.size() - shift || !has_record(image, begin + shift, kLocalSize, kLocal))
    fail(Code::kBadData, "[gguf] {}: the ZIP entry {} has no header at its offset {}", image.name(), name,
         begin);
  const std::vector<uint8_t> local = piece(image, begin += shift, kLocalSize);
  begin += kLocalSize + stored<uint16_t>(&local[26]) + stored<uint16_t>(&local[28]);
  if (begin > image.size() || entry.size > image.size() - begin)
    fail(Code::kBadData, "[gguf] {}: the ZIP entry {} needs {} bytes at {}, the file has {}", image.name(),
         name, entry.size, begin, image.size());
  if (image.narrow(begin, entry.size))
    log.info("[gguf] {}: the ZIP entry {} begins at {}, not at a multiple of 8: it is copied into memory",
             image.name(), name, begin);
}

bool is_pickle_entry(const Entry& entry) { return entry.name.ends_with(".pkl"); }
bool is_gguf_entry(const Entry& entry) { return entry.name.ends_with(".gguf"); }

// The first entry for which `wanted` holds; its name is a view of `bytes`.
template <class Wanted>
std::optional<Entry> find(std::span<const uint8_t> bytes, Wanted wanted) {
  while (std::optional<Entry> entry = next(bytes))
    if (wanted(*entry)) return entry;
  return std::nullopt;
}

[[noreturn]] void fail_pickle(const Image& image) {
  fail(Code::kBadData,
       "[gguf] {} is a pickle (PyTorch): it runs code when it is read; only GGUF and safetensors are read",
       image.name());
}

std::array<uint8_t, 9> beginning(const Image& image) {
  std::array<uint8_t, 9> bytes{};
  image.copy(0, std::span(bytes).first(std::min<uint64_t>(bytes.size(), image.size())));
  return bytes;
}

bool is_safetensors(const Image& image) {
  const auto head = beginning(image);
  return image.size() > 8 && head[8] == '{' && stored<uint64_t>(head.data()) <= image.size() - 8;
}

// Protocols 2 to 5 begin with 0x80 and their number; 0 and 1 with one of these opcodes, and all end with '.'.
bool is_pickle(const Image& image) {
  if (image.size() < 2 || is_safetensors(image)) return false;
  const auto head = beginning(image);
  if (head[0] == 0x80 && head[1] >= 2 && head[1] <= 5) return true;
  const char last = char(piece(image, image.size() - 1, 1)[0]);
  return std::string_view("(]}c").find(char(head[0])) != std::string_view::npos && last == '.';
}

}  // namespace

void refuse_pickle(const Image& image) {
  if (is_pickle(image)) fail_pickle(image);
  const auto end = find_end(image);
  if (!end || stored<uint32_t>(beginning(image).data()) != kLocal) return;
  const Directory directory = find_directory(image, *end);
  if (find(piece(image, directory.begin, directory.size), is_pickle_entry)) fail_pickle(image);
}

void find_gguf(Image& image, const Log& log) {
  const auto head = beginning(image);
  if (text(head.data(), 4) == "GGUF") return;
  if (is_safetensors(image))
    fail(Code::kBadData, "[gguf] {} is a safetensors file (its magic is not GGUF): convert it to GGUF",
         image.name());
  if (is_pickle(image)) fail_pickle(image);
  const auto end = find_end(image);
  if (!end)
    fail(Code::kBadData, "[gguf] {} is not a GGUF file: its magic is \"{}\"", image.name(),
         shown(text(head.data(), 4)));
  const Directory directory = find_directory(image, *end);
  const std::vector<uint8_t> bytes = piece(image, directory.begin, directory.size);
  if (const auto entry = find(bytes, is_gguf_entry)) {
    narrow_to(image, *entry, directory.shift, log);
  } else if (find(bytes, is_pickle_entry)) {
    fail_pickle(image);
  } else {
    fail(Code::kBadData, "[gguf] {} is a ZIP file without a .gguf entry (its magic is not GGUF)",
         image.name());
  }
}

}  // namespace juno::gguf
