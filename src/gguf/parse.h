// SPDX-License-Identifier: Apache-2.0
// One GGUF file's header, metadata and tensor entries, read front to back once and checked on the way.
#pragma once
#include <vector>

#include "base/log.h"
#include "gguf/image.h"
#include "gguf/reader.h"

namespace juno::gguf {

struct Parsed {
  uint32_t version = 0;
  uint64_t alignment = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;
};

// Throws. Names that tensors share are the reader's to find, since a model may have several files.
Parsed parse(Image& image, const Log& log);

}  // namespace juno::gguf
