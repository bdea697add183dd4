// SPDX-License-Identifier: Apache-2.0
// Options of the commands that ask a running server.
#pragma once
#include "cli/http_client.h"

namespace CLI {
class App;
}  // namespace CLI

namespace juno::cli {

struct ServerChoice {
  ServerAddress address{.url = "http://127.0.0.1:8080"};
  std::string key_file;

  // With the key: the first one of --key-file, else of JUNO_API_KEY in the environment.
  ServerAddress with_key() const;
};

void add_server_options(CLI::App& app, ServerChoice& choice);

}  // namespace juno::cli
