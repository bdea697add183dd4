// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <vector>

namespace juno {
namespace {

std::string sha256(const std::string& text, size_t piece) {
  Sha256 hash;
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t i = 0; i < text.size(); i += piece) hash.add({bytes + i, std::min(piece, text.size() - i)});
  return hash.hex();
}

// Expected: `printf TEXT | sha256sum`, coreutils 9.1.
TEST(Sha256, GivesTheStandardsDigests) {
  EXPECT_EQ(sha256("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  const std::string million(1000000, 'a');
  for (size_t piece : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{1000000}})
    EXPECT_EQ(sha256(million, piece), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
        << piece;
}

}  // namespace
}  // namespace juno
