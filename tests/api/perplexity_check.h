// SPDX-License-Identifier: Apache-2.0
// The perplexity run of tests/data/goldens over the GPL-3 as Debian ships it.
#pragma once
#include "api/golden_check.h"
#include "support/sha256.h"

namespace juno::api {

// Compares the first `windows` windows of 512 tokens with the golden's, in f32.
inline void expect_perplexity(Session& session, const std::string& name, double bound, size_t windows) {
  const std::string text = read_file("/usr/share/common-licenses/GPL-3");
  const Json golden = golden_json(name);
  if (text.empty()) GTEST_SKIP() << "/usr/share/common-licenses/GPL-3 is not here";
  if (sha256(text) != golden["text_sha256"].get<std::string>()) {
    GTEST_SKIP() << "/usr/share/common-licenses/GPL-3 is another text than the golden's";
  }
  std::vector<int32_t> ids = session.tokenizer().encode(text);
  ids.resize(windows * 512);
  const std::vector<int32_t> first = golden["first_ids"];
  ASSERT_TRUE(std::equal(first.begin(), first.end(), ids.begin()));
  const std::vector<double> reference = golden["nll"][0]["windows"];
  double expected = 0;
  for (size_t i = 0; i < windows; ++i) expected += reference[i] / static_cast<double>(windows);
  const Perplexity got = take(session.perplexity(ids, 512));
  EXPECT_EQ(got.scored, static_cast<int64_t>(windows * 511));
  EXPECT_EQ(got.window_nll.size(), windows);
  EXPECT_NEAR(got.mean_nll, expected, bound);
  EXPECT_NEAR(got.perplexity, std::exp(got.mean_nll), 1e-9 * got.perplexity);
}

}  // namespace juno::api
