// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace juno {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "juno-mapped-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::chmod(name.c_str(), 0755);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string make(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static void expect_error(const std::string& path, Code code, const char* words) {
    const auto file = MappedFile::open(path);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, code);
    EXPECT_NE(file.error().message.find(words), std::string::npos) << file.error().message;
    EXPECT_NE(file.error().message.find(path), std::string::npos) << file.error().message;
  }
  std::filesystem::path folder_;
};

TEST_F(MappedFileTest, ShowsTheFilesBytes) {
  MappedFile file = take(MappedFile::open(make("f", "hello")));
  EXPECT_EQ(std::string(file.bytes().begin(), file.bytes().end()), "hello");
  const MappedFile moved = std::move(file);
  EXPECT_FALSE(file);
  EXPECT_EQ(moved.size(), 5u);
  EXPECT_TRUE(moved.unchanged());
}

TEST_F(MappedFileTest, RefusesWhatIsNoReadableFile) {
  expect_error(folder_ / "none", Code::kNoInput, "No such file");
  expect_error(folder_, Code::kNoInput, "is a directory");
  expect_error(make("empty", ""), Code::kBadData, "is empty");
  expect_error("/dev/zero", Code::kNoInput, "not a regular file");
}

TEST_F(MappedFileTest, DoesNotWaitForAFifo) {
  const std::string path = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_error(path, Code::kNoInput, "not a regular file");
}

TEST_F(MappedFileTest, SaysThatPermissionIsMissing) {
  const std::string path = make("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const bool root = ::geteuid() == 0;  // root may read everything: be nobody for a moment
  if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root that cannot become nobody has every permission";
  expect_error(path, Code::kNoInput, "Permission denied");
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
}

TEST_F(MappedFileTest, DetachedPagesStayWhenTheFileIsCut) {
  const std::string bytes(3 * MappedFile::kPage + 10, 'x');
  const std::string path = make("f", bytes);
  MappedFile file = take(MappedFile::open(path));
  take(file.detach(0, 1));
  take(file.detach(MappedFile::kPage, bytes.size()));
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(std::string(file.bytes().begin(), file.bytes().end()), bytes);
}

TEST_F(MappedFileTest, ReadingPastTheEndOfACutFileIsAnError) {
  const std::string path = make("f", std::string(1000, 'x'));
  MappedFile file = take(MappedFile::open(path));
  std::filesystem::resize_file(path, 100);
  std::vector<uint8_t> piece(200);
  const auto read = file.read(50, piece);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("became shorter"), std::string::npos);
  EXPECT_FALSE(file.detach(0, 1000));
}

TEST_F(MappedFileTest, NoticesResizingAndWriting) {
  const std::string path = make("f", std::string(1000, 'x'));
  const MappedFile file = take(MappedFile::open(path));
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_FALSE(file.unchanged());
  std::filesystem::resize_file(path, 999);
  const auto cut = file.unchanged();
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("had 1000 bytes and now has 999"), std::string::npos);
}

}  // namespace
}  // namespace juno
