// SPDX-License-Identifier: Apache-2.0
#include "gguf/parse.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/checked.h"
#include "base/utf8.h"
#include "gguf/text.h"

namespace juno::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are taken from the file as they are");

constexpr uint64_t kLeastKey = 8 + 1 + 4 + 1;             // length, a character, type, a u8
constexpr uint64_t kLeastTensor = 8 + 1 + 4 + 8 + 4 + 8;  // length, a character, n_dims, a dim, type, offset
constexpr uint64_t kMaxKeyLength = 65535;
constexpr uint64_t kDefaultAlignment = 32, kLeastAlignment = 8, kMaxAlignment = uint64_t(1) << 20;
constexpr int kMaxNesting = 8;

// Reads front to back; whatever it does not find is an error that says where.
class Cursor {
 public:
  explicit Cursor(Image& image) : image_(image) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return image_.size() - at_; }
  const std::string& where() const { return where_; }
  void enter(std::string where) { where_ = std::move(where); }  // "key general.name": for messages

  template <class... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) const {
    juno::fail(Code::kBadData, "[gguf] {}: {}", image_.name(),
               fmt::format(text, std::forward<Args>(args)...));
  }

  const uint8_t* take(uint64_t n) {
    if (n > left()) bad("{}: the file ends after {} of {} bytes", where_, left(), n);
    const uint8_t* bytes = image_.at(at_, n);
    at_ += n;
    return bytes;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string_view text() {
    const uint64_t length = number<uint64_t>();
    if (length > left())
      bad("{}: a length of {} bytes is given, the file has {} left", where_, length, left());
    return {reinterpret_cast<const char*>(take(length)), length};
  }

 private:
  Image& image_;
  uint64_t at_ = 0;
  std::string where_ = "header";
};

bool printable(std::string_view name) {
  const auto control = [](char c) { return uint8_t(c) < 0x20 || c == 0x7f; };
  return is_utf8(name) && std::ranges::none_of(name, control);
}

void skip_items(Cursor& in, ValueType item, uint64_t count, int depth);

ValueType value_type(Cursor& in) {
  const uint32_t type = in.number<uint32_t>();
  if (type >= kValueTypes) in.bad("{}: there is no value type {}", in.where(), type);
  return ValueType(type);
}

std::pair<ValueType, uint64_t> array_head(Cursor& in) {
  const ValueType item = value_type(in);
  const uint64_t count = in.number<uint64_t>();
  if (count > in.left() / least_size(item))
    in.bad("{}: an array of {} {} does not fit the {} bytes left", in.where(), count, name_of(item),
           in.left());
  return {item, count};
}

void check_bools(Cursor& in, const uint8_t* bytes, uint64_t count) {
  const uint8_t* wrong = std::find_if(bytes, bytes + count, [](uint8_t b) { return b > 1; });
  if (wrong != bytes + count) in.bad("{}: a bool is {}, neither 0 nor 1", in.where(), *wrong);
}

void skip_items(Cursor& in, ValueType item, uint64_t count, int depth) {
  if (item == ValueType::kString) {
    for (uint64_t i = 0; i < count; i++) in.text();
  } else if (item == ValueType::kArray) {
    if (depth == kMaxNesting) in.bad("{}: arrays are nested more than {} deep", in.where(), kMaxNesting);
    for (uint64_t i = 0; i < count; i++) {
      const auto [inner, n] = array_head(in);
      skip_items(in, inner, n, depth + 1);
    }
  } else {
    const uint8_t* bytes =
        in.take(count * least_size(item));  // array_head compared the product with the file
    if (item == ValueType::kBool) check_bools(in, bytes, count);
  }
}

Value read_value(Cursor& in, const Image& image) {
  Value value{.type = value_type(in)};
  if (value.type == ValueType::kString) {
    const std::string_view text = in.text();
    value.bytes = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
    return value;
  }
  if (value.type == ValueType::kArray) std::tie(value.item, value.count) = array_head(in);
  const uint64_t begin = in.at();
  if (value.type == ValueType::kArray) {
    skip_items(in, value.item, value.count, 1);
  } else {
    skip_items(in, value.type, 1, 1);
  }
  value.bytes = {image.data() + begin, in.at() - begin};
  return value;
}

Metadata read_metadata(Cursor& in, const Image& image, uint64_t count, const Log& log) {
  std::vector<Metadata::Entry> entries;
  entries.reserve(count);
  for (uint64_t i = 0; i < count; i++) {
    in.enter(fmt::format("key {}", i));
    const std::string_view key = in.text();
    if (key.empty() || key.size() > kMaxKeyLength)
      in.bad("key {} has a name of {} bytes; 1 to {} are allowed", i, key.size(), kMaxKeyLength);
    if (!printable(key)) in.bad("the key \"{}\" holds control characters or is not UTF-8", shown(key));
    in.enter(fmt::format("key {}", shown(key)));
    const Value value = read_value(in, image);
    if (const auto text = value.as<std::string_view>(); text && !is_utf8(*text))
      log.warn("[gguf] {}: the value of {} is not UTF-8; it is shown with replacement characters",
               image.name(), key);
    entries.push_back({key, value});
  }
  return Metadata(image.name(), std::move(entries));
}

// Bytes of the tensor's data; nothing when the number does not fit 64 bits.
std::optional<uint64_t> data_bytes(const TensorInfo& tensor, const TensorType& type) {
  std::optional<uint64_t> bytes = checked_mul<uint64_t>(tensor.dims[0] / type.block, type.bytes);
  for (uint32_t i = 1; i < tensor.n_dims && bytes; i++) bytes = checked_mul(*bytes, tensor.dims[i]);
  return bytes;
}

void check_shape(Cursor& in, TensorInfo& tensor) {
  const TensorType* type = tensor_type(tensor.type);
  if (!type) in.bad("tensor {}: there is no tensor type {}", tensor.name, tensor.type);
  if (type->bytes == 0)
    in.bad("tensor {}: the type {} ({}) was withdrawn", tensor.name, type->name, type->id);
  for (uint32_t i = 0; i < tensor.n_dims; i++)
    if (tensor.dims[i] == 0) in.bad("tensor {}: dimension {} is 0", tensor.name, i);
  if (tensor.dims[0] % type->block != 0)
    in.bad("tensor {}: rows of {} elements cannot be cut into {} blocks of {}", tensor.name, tensor.dims[0],
           type->name, type->block);
  const std::optional<uint64_t> bytes = data_bytes(tensor, *type);
  if (!bytes)
    in.bad("tensor {}: the size {} does not fit 64 bits", tensor.name, fmt::join(tensor.dims, " × "));
  tensor.bytes = *bytes;
}

TensorInfo read_tensor(Cursor& in, uint64_t index) {
  in.enter(fmt::format("tensor {}", index));
  TensorInfo tensor;
  tensor.name = in.text();
  if (tensor.name.empty() || tensor.name.size() > kMaxTensorName)
    in.bad("tensor {} has a name of {} bytes; 1 to {} are allowed", index, tensor.name.size(),
           kMaxTensorName);
  if (!printable(tensor.name))
    in.bad("tensor {}: the name \"{}\" holds control characters or is not UTF-8", index, shown(tensor.name));
  in.enter(fmt::format("tensor {}", tensor.name));
  tensor.n_dims = in.number<uint32_t>();
  if (tensor.n_dims < 1 || tensor.n_dims > kMaxDims)
    in.bad("tensor {} has {} dimensions; 1 to {} are allowed", tensor.name, tensor.n_dims, kMaxDims);
  for (uint32_t i = 0; i < tensor.n_dims; i++) tensor.dims[i] = in.number<uint64_t>();
  tensor.type = in.number<uint32_t>();
  tensor.offset = in.number<uint64_t>();  // from the beginning of the data, until place_tensors
  check_shape(in, tensor);
  return tensor;
}

void place_tensors(Cursor& in, const Image& image, std::vector<TensorInfo>& tensors, uint64_t alignment) {
  const uint64_t head = in.at();
  const auto start = checked_add(head, (alignment - head % alignment) % alignment);
  const uint64_t space = start && *start < image.size() ? image.size() - *start : 0;
  for (TensorInfo& tensor : tensors) {
    if (tensor.offset % alignment != 0)
      in.bad("tensor {}: the offset {} is no multiple of general.alignment, {}", tensor.name, tensor.offset,
             alignment);
    if (tensor.offset > space || tensor.bytes > space - tensor.offset)
      in.bad("tensor {} needs {} bytes at offset {}, the file has {}", tensor.name, tensor.bytes,
             tensor.offset, space);
    tensor.offset += *start;
    tensor.data = image.data() + tensor.offset;
  }
}

void check_overlaps(Cursor& in, const std::vector<TensorInfo>& tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) { return tensors[i].offset; });
  for (size_t i = 1; i < order.size(); i++) {
    const TensorInfo &before = tensors[order[i - 1]], &after = tensors[order[i]];
    if (before.offset + before.bytes > after.offset)
      in.bad("the tensors {} and {} overlap at offset {}", before.name, after.name, after.offset);
  }
}

uint64_t alignment_of(Cursor& in, const Metadata& metadata) {
  const uint64_t alignment = metadata.get<uint64_t>("general.alignment").value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment < kLeastAlignment || alignment > kMaxAlignment)
    in.bad("general.alignment is {}, no power of two from {} to {}", alignment, kLeastAlignment,
           kMaxAlignment);
  return alignment;
}

uint32_t read_version(Cursor& in) {
  const std::string_view magic{reinterpret_cast<const char*>(in.take(4)), 4};
  if (magic != "GGUF") in.bad("not a GGUF file: the magic is \"{}\"", shown(magic));
  const uint32_t version = in.number<uint32_t>();
  if (version == 2 || version == 3) return version;
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3)
    in.bad("a big-endian file of version {}; only little-endian ones are read", swapped);
  in.bad("GGUF version {} is not read, only 2 and 3", version);
}

}  // namespace

Parsed parse(Image& image, const Log& log) {
  Cursor in(image);
  Parsed parsed;
  parsed.version = read_version(in);
  const uint64_t tensors = in.number<uint64_t>(), keys = in.number<uint64_t>();
  if (tensors > std::min(kMaxTensors, in.left() / kLeastTensor))
    in.bad("the header counts {} tensors; {} bytes are left, and {} tensors are allowed", tensors, in.left(),
           kMaxTensors);
  if (keys > std::min(kMaxKeys, in.left() / kLeastKey))
    in.bad("the header counts {} keys; {} bytes are left, and {} keys are allowed", keys, in.left(),
           kMaxKeys);
  parsed.metadata = read_metadata(in, image, keys, log);
  parsed.alignment = alignment_of(in, parsed.metadata);
  if (tensors > in.left() / kLeastTensor)
    in.bad("the header counts {} tensors; after the keys {} bytes are left", tensors, in.left());
  parsed.tensors.reserve(tensors);
  for (uint64_t i = 0; i < tensors; i++) parsed.tensors.push_back(read_tensor(in, i));
  place_tensors(in, image, parsed.tensors, parsed.alignment);
  check_overlaps(in, parsed.tensors);
  return parsed;
}

}  // namespace juno::gguf
