// SPDX-License-Identifier: Apache-2.0
// Safetensors: the tensors of a .safetensors file (adapters, embeddings), by its own description of the
// format: u64 length of the header, a JSON header, the data. A pickle is refused by its content, whatever its
// name.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "gguf/image.h"

namespace juno::gguf {

struct SafeTensor {
  std::string name;
  std::string dtype;            // "F32", "BF16" …, one of those the format has
  std::vector<uint64_t> shape;  // outermost first; empty for a scalar
  std::span<const uint8_t> data;
};

// Views live as long as the Safetensors, also when it is moved.
class Safetensors {
 public:
  static constexpr uint64_t kMaxHeader = uint64_t(16) << 20;

  // Errors: kNoInput for what cannot be read, kBadData for what is wrong, with the tensor's name.
  static Result<Safetensors> open(const std::string& path);
  static Result<Safetensors> open_memory(std::span<const uint8_t> bytes, const std::string& name);

  std::span<const SafeTensor> tensors() const { return tensors_; }  // sorted by name
  const SafeTensor* tensor(std::string_view name) const;            // null when absent
  std::span<const std::pair<std::string, std::string>> metadata() const { return metadata_; }
  Result<void> unchanged() const { return image_->unchanged(); }

 private:
  explicit Safetensors(std::unique_ptr<Image> image);

  std::unique_ptr<Image> image_;
  std::vector<SafeTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;  // the texts under __metadata__
};

}  // namespace juno::gguf
