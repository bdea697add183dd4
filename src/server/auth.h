// SPDX-License-Identifier: Apache-2.0
// Who may ask: the keys that are known, of which only hashes are kept.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "server/http.h"

namespace juno::server {

// The first half of a SHA-256, in hexadecimal digits: names what must not be told.
std::string short_hash(std::string_view text);

class Keys {
 public:
  // Texts of keys, apart by white space or commas; # begins a comment. "sha256:" and 64 digits stand for the
  // key of that hash. from: names the source in an error, kConfig.
  Result<void> add(std::string_view text, const std::string& from);
  bool empty() const { return hashes_.empty(); }

  // "k" and the beginning of the hash, for the key that a request shows: Authorization: Bearer or Basic (as
  // the password), or x-api-key. Takes the same time whichever part of a key is right.
  std::optional<std::string> tenant(const HttpRequest& request) const;

 private:
  std::optional<std::string> find(std::string_view key) const;

  std::vector<std::string> hashes_;
};

}  // namespace juno::server
