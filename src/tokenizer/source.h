// SPDX-License-Identifier: Apache-2.0
// What a GGUF file says about its vocabulary, typed but not yet believed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace juno::gguf {
class Metadata;
}

namespace juno::tokenizer {

// The views point into the file's metadata. A member left empty was not in the file.
struct VocabularySource {
  std::string name;   // general.name
  std::string model;  // tokenizer.ggml.model
  std::optional<std::string> pre;
  std::vector<std::string_view> tokens;
  std::optional<std::vector<int32_t>> types;            // [tokens], the numbers of TokenType
  std::optional<std::vector<float>> scores;             // [tokens]
  std::optional<std::vector<std::string_view>> merges;  // "left right", best first
  std::optional<uint32_t> bos, eos, eot, eom, unk, pad;
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
};

// Fails, naming the key, when a required one is missing or one has another type than it should.
Result<VocabularySource> read_vocabulary(const gguf::Metadata& metadata);

}  // namespace juno::tokenizer
