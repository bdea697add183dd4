// SPDX-License-Identifier: Apache-2.0
#include "gguf/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "gguf/container.h"
#include "gguf/text.h"

namespace juno::gguf {
namespace {

using Json = nlohmann::json;

constexpr struct {
  std::string_view name;
  uint64_t bytes;
} kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
               {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
               {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};

constexpr size_t kMaxRank = 8,
                 kMaxEntries = 65536;  // an entry costs more memory than the 7 bytes of a short one

// Takes the header's events one by one, so that memory is bounded by the header and no depth can exhaust
// anything.
class Header : public nlohmann::json_sax<Json> {
 public:
  struct Entry {
    SafeTensor tensor;
    std::vector<uint64_t> offsets;
  };
  explicit Header(const std::string& file) : file_(file) {}

  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;

  bool null() override { return odd("null"); }
  bool boolean(bool) override { return odd("a bool"); }
  bool number_integer(number_integer_t) override { return odd("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return odd("a fraction"); }
  bool binary(binary_t&) override { return odd("binary data"); }

  bool number_unsigned(number_unsigned_t n) override {
    if (level_ != kList) return odd("a number");
    std::vector<uint64_t>* list = &list_of_field();
    if (list->size() == kMaxRank) bad("{} of {} has more than {} items", field_, name(), kMaxRank);
    list->push_back(n);
    return true;
  }
  bool string(string_t& text) override {
    if (level_ == kMeta) {
      if (metadata.size() == kMaxEntries) bad("more than {} texts in __metadata__", kMaxEntries);
      metadata.emplace_back(field_, std::move(text));
    } else if (level_ == kTensor && field_ == "dtype") {
      entries.back().tensor.dtype = std::move(text);
    } else {
      return odd("a string");
    }
    return true;
  }
  bool key(string_t& key) override {
    if (level_ != kFile) {
      field_ = std::move(key);
      if (level_ == kTensor && field_ != "dtype" && field_ != "shape" && field_ != "data_offsets")
        bad("tensor {} has the unknown field {}", name(), shown(field_));
    } else if (in_metadata_ = key == "__metadata__"; !in_metadata_) {
      if (entries.size() == kMaxEntries) bad("more than {} tensors", kMaxEntries);
      entries.emplace_back().tensor.name = std::move(key);
    }
    return true;
  }
  bool start_object(size_t) override {
    if (level_ == kNothing) {
      level_ = kFile;
    } else if (level_ == kFile) {
      level_ = in_metadata_ ? kMeta : kTensor;
    } else {
      return odd("an object");
    }
    return true;
  }
  bool end_object() override {
    level_ = level_ == kFile ? kNothing : kFile;
    return true;
  }
  bool start_array(size_t) override {
    if (level_ != kTensor || field_ == "dtype") return odd("an array");
    if (!list_of_field().empty()) bad("{} of {} is given twice", field_, name());
    level_ = kList;
    return true;
  }
  bool end_array() override {
    level_ = kTensor;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    bad("the header is no JSON from byte {} on", at);
  }

 private:
  enum Level { kNothing, kFile, kMeta, kTensor, kList };

  template <class... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) const {
    fail(Code::kBadData, "[gguf] {}: {}", file_, fmt::format(text, std::forward<Args>(args)...));
  }
  std::string name() const { return entries.empty() ? "the header" : shown(entries.back().tensor.name); }
  [[noreturn]] bool odd(std::string_view what) const {
    bad("the header has {} where none belongs, at {}", what, name());
  }

  std::vector<uint64_t>& list_of_field() {
    return field_ == "shape" ? entries.back().tensor.shape : entries.back().offsets;
  }

  const std::string& file_;
  Level level_ = kNothing;
  bool in_metadata_ = false;
  std::string field_;
};

uint64_t expected_bytes(const std::string& file, const SafeTensor& tensor) {
  const auto dtype = std::ranges::find(kDtypes, tensor.dtype, [](const auto& d) { return d.name; });
  if (dtype == std::end(kDtypes))
    fail(Code::kBadData, "[gguf] {}: tensor {} has the unknown dtype \"{}\"", file, shown(tensor.name),
         shown(tensor.dtype));
  std::optional<uint64_t> bytes = dtype->bytes;
  for (size_t i = 0; i < tensor.shape.size() && bytes; i++) bytes = checked_mul(*bytes, tensor.shape[i]);
  if (!bytes)
    fail(Code::kBadData, "[gguf] {}: tensor {}: the size does not fit 64 bits", file, shown(tensor.name));
  return *bytes;
}

// The format wants the data to be covered without holes and without overlaps.
void place(const Image& image, uint64_t start, std::vector<Header::Entry>& entries) {
  const uint64_t space = image.size() - start;
  for (Header::Entry& entry : entries) {
    const std::string name = shown(entry.tensor.name);
    if (entry.offsets.size() != 2)
      fail(Code::kBadData, "[gguf] {}: tensor {} has {} data_offsets, not 2", image.name(), name,
           entry.offsets.size());
    const uint64_t begin = entry.offsets[0], end = entry.offsets[1];
    if (begin > end || end > space)
      fail(Code::kBadData, "[gguf] {}: tensor {} lies from {} to {}, the file has {} bytes of data",
           image.name(), name, begin, end, space);
    if (const uint64_t bytes = expected_bytes(image.name(), entry.tensor); bytes != end - begin)
      fail(Code::kBadData, "[gguf] {}: tensor {} needs {} bytes, its data_offsets hold {}", image.name(),
           name, bytes, end - begin);
    entry.tensor.data = {image.data() + start + begin, end - begin};
  }
  std::ranges::sort(entries, {}, [](const Header::Entry& e) { return e.offsets; });
  uint64_t at = 0;
  for (const Header::Entry& entry : entries) {
    if (entry.offsets[0] != at)
      fail(Code::kBadData, "[gguf] {}: tensor {} begins at {}, the one before it ends at {}", image.name(),
           shown(entry.tensor.name), entry.offsets[0], at);
    at = entry.offsets[1];
  }
  if (at != space)
    fail(Code::kBadData, "[gguf] {}: {} bytes of data belong to no tensor", image.name(), space - at);
}

std::string_view read_header(Image& image) {
  refuse_pickle(image);
  if (image.size() < 8)
    fail(Code::kBadData, "[gguf] {} is no safetensors file: it has {} bytes", image.name(), image.size());
  uint64_t length;
  std::memcpy(&length, image.at(0, 8), 8);
  if (length > std::min(image.size() - 8, Safetensors::kMaxHeader))
    fail(Code::kBadData,
         "[gguf] {} is no safetensors file: a header length of {} bytes, the file has {}, {} are allowed",
         image.name(), length, image.size(), Safetensors::kMaxHeader);
  return {reinterpret_cast<const char*>(image.at(8, length)), length};
}

}  // namespace

Safetensors::Safetensors(std::unique_ptr<Image> image) : image_(std::move(image)) {
  const std::string_view text = read_header(*image_);
  Header header(image_->name());
  if (!text.starts_with('{'))
    fail(Code::kBadData, "[gguf] {} is no safetensors file: its header is no object", image_->name());
  Json::sax_parse(text, &header);
  place(*image_, 8 + text.size(), header.entries);
  metadata_ = std::move(header.metadata);
  for (Header::Entry& entry : header.entries) tensors_.push_back(std::move(entry.tensor));
  std::ranges::sort(tensors_, {}, &SafeTensor::name);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, &SafeTensor::name);
  if (twice != tensors_.end())
    fail(Code::kBadData, "[gguf] {}: the tensor {} is given twice", image_->name(), shown(twice->name));
}

Result<Safetensors> Safetensors::open(const std::string& path) {
  return guard([&] {
    Safetensors file(Image::of_file(path));
    take(file.unchanged());
    return file;
  });
}

Result<Safetensors> Safetensors::open_memory(std::span<const uint8_t> bytes, const std::string& name) {
  return guard([&] { return Safetensors(Image::of_memory(bytes, name)); });
}

const SafeTensor* Safetensors::tensor(std::string_view name) const {
  const auto place = std::ranges::lower_bound(tensors_, name, {}, &SafeTensor::name);
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

}  // namespace juno::gguf
