// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace juno::server {
namespace {

struct File {
  explicit File(const std::string& text) : path(testing::TempDir() + "/juno_config_test.toml") {
    std::ofstream(path) << text;
  }
  ~File() { std::remove(path.c_str()); }
  const std::string path;
};

TEST(Config, ReadsEveryFormThatAnOptionCanHave) {
  const File file("port = 0\nquiet = true\n\n[model]\na = 'x.gguf'\nb = 'y.gguf'\n");
  const auto settings = take(read_settings(file.path));
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[0].name, "port");
  EXPECT_EQ(settings[0].values, std::vector<std::string>{"0"});
  EXPECT_EQ(settings[1].values, std::vector<std::string>{"true"});
  EXPECT_EQ(settings[1].line, 2u);
  EXPECT_EQ(settings[2].values, (std::vector<std::string>{"a=x.gguf", "b=y.gguf"}));
  const File list("cors-origin = ['https://a', 'https://b']\n");
  EXPECT_EQ(take(read_settings(list.path))[0].values, (std::vector<std::string>{"https://a", "https://b"}));
}

TEST(Config, NamesFileAndLineOfWhatIsWrong) {
  for (const char* text :
       {"port = 1\nport = 2\n", "port = \n", "x = 1\n]\n", "a = [[1]]\n", "d = 2024-01-01\n"}) {
    const File file(text);
    const auto result = read_settings(file.path);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, Code::kConfig) << text;
    EXPECT_NE(result.error().message.find(file.path + ":"), std::string::npos) << result.error().message;
  }
  EXPECT_EQ(read_settings("/no/such.toml").error().code, Code::kNoInput);
}

}  // namespace
}  // namespace juno::server
