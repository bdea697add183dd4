// SPDX-License-Identifier: Apache-2.0
// In place of the commands that speak HTTP, in a build with JUNO_SERVER=OFF: they are there and say so.
#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/local_api.h"

namespace juno::cli {
namespace {

Run refuse(CLI::App& app) {
  app.allow_extras();
  return []() -> int { fail(Code::kUsage, "[cli] this program was built without the server (JUNO_SERVER)"); };
}

}  // namespace

Run add_serve(CLI::App& app) { return refuse(app); }
Run add_chat(CLI::App& app) { return refuse(app); }
Run add_ps(CLI::App& app) { return refuse(app); }

void add_local_api_options(CLI::App&, LocalApi&) {}
int chat_beside_api(const LocalApi&, const ModelOptions&, const ReplOptions&, Conversation) {
  fail(Code::kUsage, "[cli] this program was built without the server (JUNO_SERVER)");
}

}  // namespace juno::cli
