// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <gtest/gtest.h>

namespace juno::server {
namespace {

TEST(Config, ReadsEveryFormThatAnOptionCanHave) {
  const auto settings =
      take(read_settings("port = 0\nquiet = true\n\n[model]\na = 'x.gguf'\nb = 'y.gguf'\n", "file.toml"));
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[0].name, "port");
  EXPECT_EQ(settings[0].values, std::vector<std::string>{"0"});
  EXPECT_EQ(settings[1].values, std::vector<std::string>{"true"});
  EXPECT_EQ(settings[1].line, 2u);
  EXPECT_EQ(settings[2].values, (std::vector<std::string>{"a=x.gguf", "b=y.gguf"}));
  const auto list = take(read_settings("cors-origin = ['https://a', 'https://b']\n", "file.toml"));
  EXPECT_EQ(list[0].values, (std::vector<std::string>{"https://a", "https://b"}));
}

TEST(Config, NamesFileAndLineOfWhatIsWrong) {
  for (const char* text :
       {"port = 1\nport = 2\n", "port = \n", "x = 1\n]\n", "a = [[1]]\n", "d = 2024-01-01\n"}) {
    const auto result = read_settings(text, "file.toml");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, Code::kConfig) << text;
    EXPECT_NE(result.error().message.find("file.toml:"), std::string::npos) << result.error().message;
  }
}

}  // namespace
}  // namespace juno::server
