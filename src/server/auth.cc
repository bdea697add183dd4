// SPDX-License-Identifier: Apache-2.0
#include "server/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <span>

#include "base/sha256.h"

namespace juno::server {
namespace {

constexpr std::string_view kHashed = "sha256:";

std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.add(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  return hash.hex();
}

// "Bearer abc", "Bearer" -> "abc".
std::optional<std::string_view> after_scheme(std::string_view value, std::string_view scheme) {
  const size_t space = value.find(' ');
  if (space == value.npos || !same_word(value.substr(0, space), scheme)) return {};
  value.remove_prefix(std::min(value.find_first_not_of(' ', space), value.size()));
  return value;
}

// The password of "user:password" in base64; "" for what is none.
std::string password(std::string_view base64) {
  if (base64.size() % 4 != 0 || base64.size() > 4096) return "";
  std::string text(base64.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(base64.data()), static_cast<int>(base64.size()));
  if (size < 0) return "";
  text.resize(static_cast<size_t>(size) - std::min<size_t>(2, std::ranges::count(base64, '=')));
  const size_t colon = text.find(':');
  return colon == text.npos ? "" : text.substr(colon + 1);
}

}  // namespace

std::string short_hash(std::string_view text) { return sha256(text).substr(0, 32); }

Result<void> Keys::add(std::string_view text, const std::string& from) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ','; };
  return guard([&] {
    for (size_t i = 0; i < text.size();) {
      if (is_space(text[i])) {
        ++i;
        continue;
      }
      if (text[i] == '#') {
        i = std::min(text.find('\n', i), text.size());
        continue;
      }
      size_t end = i;
      while (end < text.size() && !is_space(text[end])) ++end;
      const std::string_view key = text.substr(i, end - i);
      i = end;
      if (!std::ranges::all_of(key, [](char c) { return c > 0x20 && c < 0x7f; }))
        fail(Code::kConfig, "[server] {}: a key holds a character that is not visible ASCII", from);
      const std::string_view digits = key.substr(std::min(key.size(), kHashed.size()));
      const bool hashed = key.starts_with(kHashed);
      if (hashed && (digits.size() != 64 || digits.find_first_not_of("0123456789abcdef") != digits.npos))
        fail(Code::kConfig, "[server] {}: after {} there must be 64 digits 0-9a-f", from, kHashed);
      hashes_.push_back(hashed ? std::string(digits) : sha256(key));
    }
  });
}

std::optional<std::string> Keys::find(std::string_view key) const {
  const std::string given = sha256(key);
  std::optional<std::string> found;
  for (const std::string& hash : hashes_)  // all of them, whichever it is
    if (CRYPTO_memcmp(hash.data(), given.data(), given.size()) == 0) found = "k" + given.substr(0, 16);
  return found;
}

std::optional<std::string> Keys::tenant(const HttpRequest& request) const {
  std::optional<std::string> tenant;
  if (const auto key = request.header("x-api-key")) tenant = find(*key);
  const auto value = request.header("authorization");
  if (tenant || !value) return tenant;
  if (const auto key = after_scheme(*value, "bearer")) return find(*key);
  if (const auto pair = after_scheme(*value, "basic")) return find(password(*pair));
  return {};
}

}  // namespace juno::server
