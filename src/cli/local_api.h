// SPDX-License-Identifier: Apache-2.0
// The API of `juno serve` beside a chat at the terminal, which is then one more client of the same model.
#pragma once
#include <optional>

#include "cli/conversation.h"
#include "cli/options.h"
#include "cli/repl.h"

namespace juno::cli {

struct LocalApi {
  std::string host = "127.0.0.1";
  std::optional<int64_t> port;  // 0: any free one, which is told
};

void add_local_api_options(CLI::App& app, LocalApi& api);

// Serves and chats until the chat ends; without a terminal, until SIGINT or SIGTERM. The keys are those of
// JUNO_API_KEY. Returns the exit status.
int chat_beside_api(const LocalApi& api, const ModelOptions& model, const ReplOptions& how,
                    Conversation conversation);

}  // namespace juno::cli
