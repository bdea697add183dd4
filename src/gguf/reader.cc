// SPDX-License-Identifier: Apache-2.0
#include "gguf/reader.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "gguf/container.h"
#include "gguf/image.h"
#include "gguf/parse.h"
#include "gguf/text.h"

namespace juno::gguf {
namespace {

// The keys that each part of a split model carries.
struct Split {
  uint32_t no = 0, count = 1;
  std::optional<uint64_t> tensors;  // of all parts together
};

Split split_of(const Metadata& metadata) {
  return {.no = metadata.get<uint32_t>("split.no").value_or(0),
          .count = metadata.get<uint32_t>("split.count").value_or(1),
          .tensors = metadata.get<uint64_t>("split.tensors.count")};
}

std::string part_ending(uint32_t no, uint32_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", no + 1, count);
}

// The path of a split model's parts without their endings; an error unless `path` is the first of them.
std::string stem_of(const std::string& path, const Split& split) {
  const std::string ending = part_ending(split.no, split.count);
  if (split.no >= split.count)
    fail(Code::kBadData, "[gguf] {}: split.no is {}, split.count {}", path, split.no, split.count);
  if (!path.ends_with(ending))
    fail(Code::kBadData, "[gguf] {}: split.count is {}, so this file's name must end in {}", path,
         split.count, ending);
  const std::string stem = path.substr(0, path.size() - ending.size());
  if (split.no != 0)
    fail(Code::kBadData, "[gguf] {} is part {} of a split model: open {}{}", path, split.no + 1, stem,
         part_ending(0, split.count));
  return stem;
}

void check_part(const std::string& path, const Split& part, const Split& expected) {
  const auto check = [&](const char* key, uint64_t found, uint64_t wanted) {
    if (found != wanted) fail(Code::kBadData, "[gguf] {}: {} is {}, expected {}", path, key, found, wanted);
  };
  check("split.no", part.no, expected.no);
  check("split.count", part.count, expected.count);
  if (part.tensors && expected.tensors) check("split.tensors.count", *part.tensors, *expected.tensors);
}

void warn_of_keys(const std::string& path, const Metadata& part, const Metadata& first, const Log& log) {
  std::string names;
  for (const Metadata::Entry& entry : part.entries())
    if (!first.find(entry.key) && names.size() < 1000) names += fmt::format(" {}", shown(entry.key));
  if (!names.empty())
    log.warn("[gguf] {}: only the first part's keys count, these are ignored:{}", path, names);
}

}  // namespace

Reader::Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(const std::string& path, const Log& log) {
  return guard([&] {
    Reader reader;
    reader.add_first(Image::of_file(path), log);
    const Split split = split_of(reader.metadata_);
    if (split.count > 1) reader.add_others(stem_of(path, split), split.count, log);
    reader.index_tensors();
    take(reader.unchanged());
    return reader;
  });
}

Result<Reader> Reader::open_memory(std::span<const uint8_t> bytes, const std::string& name, const Log& log) {
  return guard([&] {
    Reader reader;
    reader.add_first(Image::of_memory(bytes, name), log);
    if (split_of(reader.metadata_).count > 1)
      fail(Code::kBadData, "[gguf] {}: split.count: a split model cannot be opened from memory", name);
    reader.index_tensors();
    return reader;
  });
}

void Reader::add_first(std::unique_ptr<Image> image, const Log& log) {
  find_gguf(*image, log);
  Parsed parsed = parse(*image, log);
  version_ = parsed.version;
  alignment_ = parsed.alignment;
  metadata_ = std::move(parsed.metadata);
  tensors_ = std::move(parsed.tensors);
  images_.push_back(std::move(image));
}

void Reader::add_others(const std::string& stem, uint32_t count, const Log& log) {
  Split expected = split_of(metadata_);
  for (expected.no = 1; expected.no < count; expected.no++) {
    const std::string path = stem + part_ending(expected.no, count);
    try {
      std::unique_ptr<Image> image = Image::of_file(path);
      const Parsed parsed = parse(*image, log);
      check_part(path, split_of(parsed.metadata), expected);
      warn_of_keys(path, parsed.metadata, metadata_, log);
      for (TensorInfo tensor : parsed.tensors) {
        tensor.part = expected.no;
        tensors_.push_back(tensor);
      }
      images_.push_back(std::move(image));
    } catch (const Error& e) {
      fail(e.code, "[gguf] {}, part {} of {}: {}", name(), expected.no + 1, count, e.message);
    }
  }
  if (expected.tensors.value_or(tensors_.size()) != tensors_.size())
    fail(Code::kBadData, "[gguf] {}: split.tensors.count is {}, but the {} parts hold {} tensors", name(),
         *expected.tensors, count, tensors_.size());
}

void Reader::index_tensors() {
  order_.resize(tensors_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  const auto name_of_tensor = [&](uint32_t i) { return tensors_[i].name; };
  std::ranges::sort(order_, {}, name_of_tensor);
  const auto twice = std::ranges::adjacent_find(order_, {}, name_of_tensor);
  if (twice != order_.end())
    fail(Code::kBadData, "[gguf] {}: the tensor {} is given twice", name(), name_of_tensor(*twice));
}

const std::string& Reader::name() const { return images_.front()->name(); }

const TensorInfo* Reader::tensor(std::string_view name) const {
  const auto place = std::ranges::lower_bound(order_, name, {}, [&](uint32_t i) { return tensors_[i].name; });
  return place != order_.end() && tensors_[*place].name == name ? &tensors_[*place] : nullptr;
}

uint64_t Reader::file_bytes() const {
  uint64_t sum = 0;
  for (const auto& image : images_) sum += image->file_bytes();
  return sum;
}

uint64_t Reader::tensor_bytes() const {
  uint64_t sum = 0;
  for (const TensorInfo& tensor : tensors_) sum += tensor.bytes;
  return sum;
}

std::function<void(const uint8_t*, uint64_t)> Reader::forgetter() const {
  std::vector<const Image*> images;
  for (const auto& image : images_) images.push_back(image.get());
  return [images = std::move(images)](const uint8_t* data, uint64_t bytes) {
    for (const Image* image : images) {
      const auto offset = reinterpret_cast<uintptr_t>(data) - reinterpret_cast<uintptr_t>(image->data());
      if (offset < image->size()) image->forget(offset, bytes);
    }
  };
}

Result<void> Reader::unchanged() const {
  for (const auto& image : images_)
    if (Result<void> same = image->unchanged(); !same) return same;
  return {};
}

}  // namespace juno::gguf
