// SPDX-License-Identifier: Apache-2.0
#include "gguf/support.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "gguf/reader.h"

namespace juno::gguf::testing {
namespace {

int64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

std::string receive(int fd) {
  std::string all;
  char piece[4096];
  for (ssize_t n; (n = ::read(fd, piece, sizeof piece)) > 0;) all.append(piece, size_t(n));
  ::close(fd);
  return all;
}

}  // namespace

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "juno-gguf-XXXXXX").string();
  if (!::mkdtemp(name.data())) std::abort();
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Outcome in_child(const std::function<Report()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const int64_t before = peak_bytes();
    const auto start = std::chrono::steady_clock::now();
    const Report report = work();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    const std::string text =
        fmt::format("{} {} {} {} ", report.code, took.count(), peak_bytes() - before, report.message.size()) +
        report.message + report.warnings;
    const bool sent = ::write(ends[1], text.data(), text.size()) == ssize_t(text.size());
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  const std::string text = receive(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  Outcome outcome{.died = !WIFEXITED(status) || WEXITSTATUS(status) != 0};
  size_t length = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%d %lf %ld %zu%n", &outcome.code, &outcome.ms, &outcome.growth, &length,
                  &used) != 4)
    outcome.died = true;
  if (outcome.died) return outcome;
  outcome.message = text.substr(size_t(used) + 1, length);
  outcome.warnings = text.substr(size_t(used) + 1 + length);
  return outcome;
}

Outcome open_in_child(const std::string& path) {
  return in_child([&] {
    Listener listener;
    const auto reader = Reader::open(path, listener.log);
    if (reader) return Report{0, "", listener.heard};
    return Report{int(reader.error().code), reader.error().message, listener.heard};
  });
}

TEST(Support, AChildThatDiesIsNoticed) {
  EXPECT_TRUE(in_child([]() -> Report {
                ::raise(SIGKILL);
                return {};
              }).died);
  const Outcome outcome = in_child([] { return Report{65, "no", "a warning\n"}; });
  EXPECT_FALSE(outcome.died);
  EXPECT_EQ(outcome.code, 65);
  EXPECT_EQ(outcome.message, "no");
  EXPECT_EQ(outcome.warnings, "a warning\n");
}

}  // namespace juno::gguf::testing
