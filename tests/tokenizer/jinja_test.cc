// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tokenizer/chat_template.h"

namespace juno::tokenizer {
namespace {

using nlohmann::ordered_json;

std::tm reference_time() {
  std::tm t{};
  EXPECT_NE(strptime("2025-03-14 15:09:26", "%Y-%m-%d %H:%M:%S", &t), nullptr);
  return t;
}

Result<Rendered> render(const std::string& source, const ordered_json& variables) {
  auto parsed = ChatTemplate::parse(source, "t");
  if (!parsed) return tl::unexpected(parsed.error());
  ordered_json messages = ordered_json::array();
  ChatInputs in;
  in.messages = &messages;
  in.arguments = &variables;
  in.now = reference_time();
  return parsed->render(in);
}

TEST(Jinja, SmallTemplatesRenderAsTheReferenceDoes) {
  std::ifstream file(std::string(JUNO_SOURCE_DIR) + "/tests/tokenizer/golden/jinja.json");
  ordered_json goldens = ordered_json::parse(file);
  ASSERT_GT(goldens["rows"].size(), 500u);
  for (const auto& row : goldens["rows"]) {
    std::string source = row["source"];
    Result<Rendered> r = render(source, goldens["variables"]);
    if (row.contains("error")) {
      EXPECT_FALSE(r) << source << " gives " << r->text() << ", the reference fails: " << row["error"];
    } else if (r) {
      EXPECT_EQ(r->text(), row["expected"].get<std::string>()) << source;
    } else {
      ADD_FAILURE() << source << ": " << r.error().message << ", the reference gives " << row["expected"];
    }
  }
}

}  // namespace
}  // namespace juno::tokenizer
