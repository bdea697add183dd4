// SPDX-License-Identifier: Apache-2.0
#include "cli/server_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "cli/options.h"

namespace juno::cli {
namespace {

// As serve reads a file of keys: # begins a comment.
std::string first_key(const std::string& text) {
  std::string key;
  for (size_t at = 0; at < text.size() && key.empty(); at++) {
    if (text[at] == '#') at = std::min(text.find('\n', at), text.size() - 1);
    const size_t begin = text.find_first_not_of(" \t\r\n,", at);
    if (begin != at) continue;
    key = text.substr(at, text.find_first_of(" \t\r\n,#", at) - at);
  }
  return key;
}

}  // namespace

ServerAddress ServerChoice::with_key() const {
  ServerAddress with = address;
  if (!key_file.empty()) {
    with.key = first_key(read_text(key_file));
    if (with.key.empty()) fail(Code::kConfig, "[cli] --key-file: {} holds no key", key_file);
    if (with.key.starts_with("sha256:"))
      fail(Code::kConfig, "[cli] --key-file: {} holds the hash of a key, not the key", key_file);
  } else if (const char* variable = std::getenv("JUNO_API_KEY"); variable) {
    with.key = first_key(variable);
  }
  return with;
}

void add_server_options(CLI::App& app, ServerChoice& choice) {
  app.add_option("--url,-u", choice.address.url, "Address of the server, as http://127.0.0.1:8080");
  app.add_option("--key-file", choice.key_file,
                 "File whose first key is shown to the server; without it, that of JUNO_API_KEY");
  app.add_option("--ca-file", choice.address.ca_file,
                 "PEM file of authorities to trust for https; without it, those of this system");
}

}  // namespace juno::cli
