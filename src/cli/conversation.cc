// SPDX-License-Identifier: Apache-2.0
#include "cli/conversation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace juno::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool has_system(const std::vector<api::Message>& messages) {
  return !messages.empty() && messages[0].role == "system";
}

// The file that a name stands for, links followed, also where there is none yet.
fs::path target_of(fs::path path) {
  std::error_code ignored;  // whoever opens the path meets it too
  for (int links = 0; fs::is_symlink(fs::symlink_status(path, ignored)); ++links) {
    if (links == 40) fail(Code::kUsage, "[cli] {} is a link that leads in a circle", path.string());
    path = path.parent_path() / fs::read_symlink(path, ignored);
  }
  return path;
}

// `path` is named in errors. An empty file holds nothing that could be lost.
void check_replaceable(const fs::path& target, const std::string& path) {
  std::error_code ignored;
  const fs::file_status there = fs::status(target, ignored);
  if (!fs::exists(there)) return;
  if (!fs::is_regular_file(there)) fail(Code::kUsage, "[cli] {} is not a regular file", path);
  if (fs::file_size(target, ignored) > 0 && !guard([&] { return Conversation::load(target.string()); }))
    fail(Code::kUsage, "[cli] {} exists and is not a saved conversation: it is not overwritten", path);
}

// Into a file beside the target, which then takes its place.
void write_private(const std::string& path, const std::string& text) {
  const std::string target = target_of(path).string();
  check_replaceable(target, path);
  std::string part = target + ".XXXXXX";
  const int fd = ::mkostemp(part.data(), O_CLOEXEC);  // mode 0600
  bool good = fd >= 0;
  for (size_t done = 0; good && done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n > 0) done += static_cast<size_t>(n);
    else good = n < 0 && errno == EINTR;
  }
  int why = errno;
  if (fd >= 0 && ::close(fd) != 0 && good) {
    good = false;
    why = errno;
  }
  if (good && std::rename(part.c_str(), target.c_str()) == 0) return;
  if (good) why = errno;
  if (fd >= 0) ::unlink(part.c_str());
  fail(Code::kFailed, "[cli] cannot write {}: {}", path, std::strerror(why));
}

// Opened without waiting, for a pipe may never get a writer.
std::string read_regular(const std::string& path) {
  constexpr size_t kLargest = size_t{64} << 20, kStep = 65536;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat about {};
  const bool regular = fd >= 0 && ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  std::string text;
  ssize_t n = fd < 0 ? -1 : regular ? 1 : 0;
  while (n > 0 && text.size() <= kLargest) {
    const size_t size = text.size();
    text.resize(size + kStep);
    do n = ::read(fd, text.data() + size, kStep);
    while (n < 0 && errno == EINTR);
    text.resize(size + static_cast<size_t>(std::max<ssize_t>(n, 0)));
  }
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (n < 0) fail(Code::kNoInput, "[cli] cannot read {}: {}", path, std::strerror(why));
  if (!regular) fail(Code::kNoInput, "[cli] cannot read {}: it is not a regular file", path);
  if (text.size() > kLargest)
    fail(Code::kBadData, "[cli] {} is not a saved conversation: it holds more than {} bytes", path, kLargest);
  return text;
}

}  // namespace

void Conversation::reset() { messages.resize(has_system(messages) ? 1 : 0); }

void Conversation::set_system(const std::string& text) {
  if (has_system(messages)) messages.erase(messages.begin());
  if (!text.empty()) messages.insert(messages.begin(), {"system", text});
}

void Conversation::save(const std::string& path) const {
  Json list = Json::array();
  for (const api::Message& m : messages) list.push_back({{"role", m.role}, {"content", m.content}});
  const Json file = {{"juno_conversation", 1}, {"messages", list}};
  write_private(path, file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Conversation Conversation::load(const std::string& path) {
  const Json file = Json::parse(read_regular(path), nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("juno_conversation") || !file.contains("messages") ||
      !file["messages"].is_array())
    fail(Code::kBadData, "[cli] {} is not a saved conversation", path);
  Conversation loaded;
  for (const Json& m : file["messages"]) {
    if (!m.is_object() || !m.contains("role") || !m["role"].is_string() || !m.contains("content") ||
        !m["content"].is_string())
      fail(Code::kBadData, "[cli] {}: message {} needs a text role and a text content", path,
           loaded.messages.size());
    loaded.messages.push_back({m["role"], m["content"]});
  }
  return loaded;
}

std::string state_file(const std::string& name) {
  fs::path folder;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state) folder = state;
  else if (const char* home = std::getenv("HOME"); home && *home) folder = fs::path(home) / ".local/state";
  else return "";
  folder /= "juno";
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? "" : (folder / name).string();
}

}  // namespace juno::cli
