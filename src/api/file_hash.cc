// SPDX-License-Identifier: Apache-2.0
#include "api/file_hash.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/sha256.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kHashedWhole = uint64_t{2} << 30;  // larger files would take longer than a minute to hash
constexpr uint64_t kEnd = uint64_t{1} << 20;

void add_file(Sha256& hash, std::ifstream& in, uint64_t begin, uint64_t end) {
  std::vector<char> buffer(kEnd);
  in.seekg(static_cast<std::streamoff>(begin));
  while (begin < end && in.read(buffer.data(), static_cast<std::streamsize>(std::min(kEnd, end - begin)))) {
    hash.add({reinterpret_cast<const uint8_t*>(buffer.data()), static_cast<size_t>(in.gcount())});
    begin += static_cast<uint64_t>(in.gcount());
  }
}

}  // namespace

Json file_hash(const SessionOptions& o) {
  Sha256 hash;
  if (!o.model_bytes.empty()) {
    hash.add(o.model_bytes);
    return {{"sha256", hash.hex()}, {"sha256_of", "the whole file"}};
  }
  std::ifstream in(o.model_path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(in.tellg(), 0));
  const bool whole = size <= kHashedWhole;
  add_file(hash, in, 0, whole ? size : kEnd);
  if (!whole) {
    add_file(hash, in, size - kEnd, size);
    const std::string digits = fmt::format("{}", size);
    hash.add({reinterpret_cast<const uint8_t*>(digits.data()), digits.size()});
  }
  if (!in) fail(Code::kNoInput, "[api] cannot read {} for its hash", o.model_path);
  return {{"sha256", hash.hex()},
          {"sha256_of", whole ? "the whole file" : "the first and the last MiB and the size in decimal"}};
}

}  // namespace juno::api
