// SPDX-License-Identifier: Apache-2.0
#include "cli/local_api.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

#include "api/models.h"
#include "cli/bus_error.h"
#include "cli/server_options.h"
#include "cli/server_partner.h"
#include "cli/signals.h"
#include "server/server.h"

namespace juno::cli {
namespace {

std::string served_name(const ModelOptions& model) {
  return model.model_path.empty() ? "juno-demo" : std::filesystem::path(model.model_path).stem().string();
}

server::ServerOptions server_options(const LocalApi& api, const Log& log) {
  server::ServerOptions options;
  options.listen.host = api.host;
  options.listen.port = static_cast<uint16_t>(*api.port);
  options.listen.log = log;
  if (const char* keys = std::getenv("JUNO_API_KEY")) take(options.keys.add(keys, "JUNO_API_KEY"));
  return options;
}

// Ends what is asked of the server, then the server, however this scope is left.
struct Ending {
  api::Models& models;
  server::Server& server;
  ~Ending() {
    models.stop();
    server.drain(std::chrono::seconds(1), std::atomic<bool>(false));  // what was cut off still goes out
    server.stop();
  }
};

}  // namespace

void add_local_api_options(CLI::App& app, LocalApi& api) {
  app.add_option("--api-port", api.port,
                 "Serve the API of `juno serve` beside the chat, on this port; 0: any free one")
      ->transform(in_range(int64_t{0}, int64_t{65535}));
  app.add_option("--api-host", api.host, "Address of this machine to serve it on");
}

int chat_beside_api(const LocalApi& api, const ModelOptions& model, const ReplOptions& how,
                    Conversation conversation) {
  const Log log = stderr_log(false, how.quiet);
  server::ServerOptions options = server_options(api, log);
  take(server::Server::check(options));  // before anything is loaded
  const std::string name = served_name(model);
  const api::SessionOptions session = model.opened(log);
  explain_bus_errors(session.model_path);
  std::vector<api::NamedModel> named;
  named.push_back({.name = name, .options = session});
  const auto models = take(api::Models::open(std::move(named), {.threads = session.threads}));
  const auto service = take(models->get(name));  // held: it stays loaded
  if (!how.raw && service->chat_fault()) throw Error(*service->chat_fault());
  server::Metrics metrics;
  server::App app{*models, metrics};
  const auto server = take(server::Server::start(std::move(options), app));
  const Ending ending{*models, *server};
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
    EndSignals signals;
    tell(fmt::format("juno: listening on {}; without a terminal there is no chat", server->url()));
    signals.wait();
    return 0;
  }
  ServerChoice self;
  self.address.url = server->url();
  ServerPartner partner(self.with_key(), name);
  partner.check(how.generation);
  return Repl(partner, how, std::move(conversation)).run();
}

}  // namespace juno::cli
