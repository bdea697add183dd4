// SPDX-License-Identifier: Apache-2.0
// The vocabularies that tests use: those of the repository's files, and small ones made up here.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gguf/reader.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace juno::tokenizer {

inline std::string data_file(const std::string& name) {
  return std::string(JUNO_SOURCE_DIR) + "/tests/data/" + name;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// What a load said besides its result.
struct Said {
  std::string warnings;
  Log log() {
    return {[this](Level level, const std::string& text) {
      if (level == Level::kWarning) warnings += text + "\n";
    }};
  }
};

inline Tokenizer load_file(const std::string& path) {
  Said said;
  gguf::Reader reader = take(gguf::Reader::open(path, said.log()));
  Tokenizer tokenizer = take(Tokenizer::load(reader.metadata(), said.log()));
  EXPECT_EQ(said.warnings.find("[tokenizer]"), std::string::npos) << path << ": " << said.warnings;
  return tokenizer;
}

inline const std::vector<std::string>& families() {
  static const std::vector<std::string> names{"gpt-2", "llama-bpe", "qwen2", "llama-spm", "phi-3"};
  return names;
}

// Loaded once: a test program uses each vocabulary many times.
inline const Tokenizer& family(const std::string& name) {
  static std::vector<std::pair<std::string, std::unique_ptr<Tokenizer>>> loaded;
  for (const auto& [known, tokenizer] : loaded) {
    if (known == name) return *tokenizer;
  }
  const std::string path = data_file("tokenizers/ggml-vocab-" + name + ".gguf");
  loaded.emplace_back(name, std::make_unique<Tokenizer>(load_file(path)));
  return *loaded.back().second;
}

inline bool is_byte_level(const std::string& family_name) {
  return family_name != "llama-spm" && family_name != "phi-3";
}

// The path of a model that the repository does not carry, or nothing.
inline std::string outside_model(const std::string& file) {
  const char* folder = std::getenv("JUNO_TEST_MODELS");
  for (const std::string& base :
       {folder ? std::string(folder) : "", std::string(JUNO_SOURCE_DIR) + "/../shared/data/models"}) {
    if (!base.empty() && std::filesystem::exists(base + "/" + file)) return base + "/" + file;
  }
  return "";
}

inline std::string spelled(uint8_t byte) {
  static const std::vector<std::string> table = [] {
    std::vector<std::string> all(256);
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool visible = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      append_utf8(all[static_cast<size_t>(b)], visible ? static_cast<char32_t>(b) : next++);
    }
    return all;
  }();
  return table[byte];
}

// A source with the texts that it views.
struct MadeUp {
  std::vector<std::string> tokens, merges;
  VocabularySource source;

  VocabularySource& viewed() {
    source.tokens.assign(tokens.begin(), tokens.end());
    source.types->resize(tokens.size(), 1);
    if (source.merges) source.merges->assign(merges.begin(), merges.end());
    return source;
  }
};

// All bytes, a few merges, four control tokens.
inline MadeUp small_bpe() {
  MadeUp made;
  for (int b = 0; b < 256; ++b) made.tokens.push_back(spelled(static_cast<uint8_t>(b)));
  for (const char* merge : {"\u0120 a", "b a", "ba n", "a n", "an a"}) {
    made.merges.push_back(merge);
    std::string joined = merge;
    joined.erase(joined.find(' '), 1);
    made.tokens.push_back(joined);
  }
  made.source.model = "gpt2";
  made.source.pre = "gpt-2";
  made.source.types.emplace(made.tokens.size(), 1);
  for (const char* control : {"<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>"}) {
    made.tokens.push_back(control);
    made.source.types->push_back(3);
  }
  made.source.bos = 261, made.source.eos = 262;
  made.source.merges.emplace();
  made.viewed();
  return made;
}

}  // namespace juno::tokenizer
