// SPDX-License-Identifier: Apache-2.0
// For the tests of this room: folders that vanish, GGUF bytes made by hand, child processes that may not die.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace juno::gguf::testing {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), std::streamsize(bytes.size()));
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The bytes of a file, put together without the writer, so that any part may lie.
struct Draft {
  uint32_t version = 3;
  std::string keys, tensors, data;
  uint64_t n_keys = 0, n_tensors = 0;

  template <class T>
  static std::string raw(T number) {
    return {reinterpret_cast<const char*>(&number), sizeof number};
  }
  static std::string text(std::string_view s) { return raw(uint64_t(s.size())) + std::string(s); }

  Draft& key(std::string_view name, uint32_t type, std::string_view bytes) {
    keys += text(name) + raw(type) + std::string(bytes);
    n_keys++;
    return *this;
  }
  Draft& tensor(std::string_view name, uint32_t type, std::vector<uint64_t> dims, uint64_t offset) {
    tensors += text(name) + raw(uint32_t(dims.size()));
    for (uint64_t dim : dims) tensors += raw(dim);
    tensors += raw(type) + raw(offset);
    n_tensors++;
    return *this;
  }
  std::string pack() const {
    std::string out = "GGUF" + raw(version) + raw(n_tensors) + raw(n_keys) + keys + tensors;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data;
  }
};

// Collects warnings.
struct Listener {
  std::string heard;
  Log log{[this](Level level, const std::string& text) {
    if (level == Level::kWarning) heard += text + "\n";
  }};
};

struct Outcome {
  bool died = false;     // by a signal, an assertion or a sanitizer
  int code = 0;          // 0: no error, else juno::Code
  std::string message;   // of the error
  std::string warnings;  // each with a line end
  double ms = 0;
  int64_t growth = 0;  // of the peak resident memory, bytes
};

// Runs `work`, which returns code, message and warnings, in a child process.
struct Report {
  int code = 0;
  std::string message, warnings;
};
Outcome in_child(const std::function<Report()>& work);

// Reader::open in a child process.
Outcome open_in_child(const std::string& path);

}  // namespace juno::gguf::testing
