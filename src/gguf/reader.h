// SPDX-License-Identifier: Apache-2.0
// Reader: the metadata and tensors of a GGUF model (v2 and v3, little endian), in one file, in the parts of a
// split model, or inside an executable ZIP (llamafile). Whatever it hands out has been checked.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "gguf/metadata.h"
#include "gguf/types.h"

namespace juno::gguf {

inline constexpr uint32_t kMaxDims = 4;
inline constexpr size_t kMaxTensorName = 64;
inline constexpr uint64_t kMaxKeys = uint64_t(1) << 16, kMaxTensors = uint64_t(1) << 18;

struct TensorInfo {
  std::string_view name;
  uint32_t type = 0;    // an id of kTensorTypes that was not withdrawn; quant/formats.h may still lack it
  uint32_t n_dims = 0;  // 1 … 4
  uint64_t dims[kMaxDims] = {1, 1, 1,
                             1};  // dims[0] is a row's length, a multiple of the type's block; none is 0
  uint64_t offset = 0;            // of the data in its file, from the beginning of the GGUF part
  uint64_t bytes = 0;             // of the data
  const uint8_t* data =
      nullptr;        // lies within the file, aligned to 8 bytes or more, overlaps no other tensor
  uint32_t part = 0;  // which file of a split model
};

// One file's bytes; see gguf/image.h.
class Image;

// Views (names, metadata, data) live as long as the Reader, also when it is moved.
class Reader {
 public:
  // `path` may be the first part of a split model; the others are opened beside it. Errors name the file and
  // the key, tensor or field: kNoInput for what cannot be read, kBadData for what is wrong. Vocabularies are
  // files without tensors and open too: that a model has all its tensors is for the model to say.
  static Result<Reader> open(const std::string& path, const Log& log);

  // The same for bytes that the caller keeps, aligned to 8; no split models.
  static Result<Reader> open_memory(std::span<const uint8_t> bytes, const std::string& name, const Log& log);

  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  const std::string& name() const;  // the path that was opened
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const Metadata& metadata() const { return metadata_; }            // of the first part
  std::span<const TensorInfo> tensors() const { return tensors_; }  // in the files' order
  const TensorInfo* tensor(std::string_view name) const;            // null when absent

  size_t parts() const { return images_.size(); }
  uint64_t file_bytes() const;    // sum over all parts
  uint64_t tensor_bytes() const;  // sum of TensorInfo::bytes

  // To be called when the data of a tensor, or a part of it, was copied to where it is needed: memory that it
  // took here is given back. It stays readable. The function lives no longer than what was read.
  std::function<void(const uint8_t* data, uint64_t bytes)> forgetter() const;

  // An error when a part was written to or cut since open(): ask after the weights have been read.
  Result<void> unchanged() const;

 private:
  Reader();
  void add_first(std::unique_ptr<Image> image, const Log& log);
  void add_others(const std::string& stem, uint32_t count, const Log& log);
  void index_tensors();

  std::vector<std::unique_ptr<Image>> images_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> order_;  // of tensors_, sorted by name
};

}  // namespace juno::gguf
