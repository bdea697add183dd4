// SPDX-License-Identifier: Apache-2.0
#include "cli/conversation.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/options.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;

bool has_system(const std::vector<api::Message>& messages) {
  return !messages.empty() && messages[0].role == "system";
}

void write_private(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool good = fd >= 0;
  for (size_t done = 0; good && done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n > 0) done += static_cast<size_t>(n);
    else good = n < 0 && errno == EINTR;
  }
  const int why = errno;
  if (fd >= 0) good = ::close(fd) == 0 && good;
  if (!good || std::rename(part.c_str(), path.c_str()) != 0)
    fail(Code::kFailed, "[cli] cannot write {}: {}", path, std::strerror(good ? errno : why));
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
  const Json file = Json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
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
  std::filesystem::path folder;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state) folder = state;
  else if (const char* home = std::getenv("HOME"); home && *home)
    folder = std::filesystem::path(home) / ".local/state";
  else return "";
  folder /= "juno";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? "" : (folder / name).string();
}

}  // namespace juno::cli
