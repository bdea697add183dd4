// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/models.h"
#include "cli/bus_error.h"
#include "cli/config.h"
#include "cli/format.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "server/server.h"

namespace juno::cli {
namespace {

struct ServeOptions {
  ModelOptions model;
  std::vector<std::string> models, aliases;  // NAME=PATH, NAME=MODEL
  api::ServiceOptions service;
  server::ServerOptions server;
  server::Tls tls;
  std::string key_file, config, ready_file, unknown_fields = "refuse";
  int64_t sequences = 32, prompt_lookup = 0, port = 8080;
  double idle_unload = 0, grace = 30, watchdog = 60;
  bool store_responses = false, quiet = false, verbose = false;
};

void add_model_part(CLI::App& app, ServeOptions& o) {
  add_model_options(app, o.model);
  app.add_option("--model", o.models, "NAME=PATH of a model to serve (may be given several times)")
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--alias", o.aliases, "NAME=MODEL, another name of a model (may be given several times)")
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--chat-template", o.model.session.chat_template,
                 "A built-in template's name, or a Jinja file; without it, the model's own");
  app.add_option("--sequences", o.sequences, "Requests that run at once")
      ->transform(in_range(int64_t{1}, int64_t{4096}));
  app.add_option("--max-queue", o.service.queue, "Requests that may wait; more get 429")
      ->transform(in_range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--kv-positions", o.service.kv_positions,
                 "Positions of keys and values that all requests share; 0: what the memory allows")
      ->transform(in_range(int64_t{0}, int64_t{1} << 40));
  app.add_option("--draft-model", o.model.session.draft_model,
                 "GGUF file of a smaller model that guesses tokens; the text stays the same");
  app.add_option("--prompt-lookup", o.prompt_lookup,
                 "Guess so many tokens at once from the prompt; the text stays the same; 0: do not")
      ->transform(in_range(int64_t{0}, int64_t{64}));
  app.add_flag("--embeddings", o.service.embeddings, "Give embeddings though a file does not say how");
  app.add_option("--idle-unload", o.idle_unload,
                 "Unload a model that nobody has used for so many seconds; 0: never")
      ->transform(in_range(0.0, 1e9));
}

void add_network_part(CLI::App& app, ServeOptions& o) {
  server::Listen& listen = o.server.listen;
  app.add_option("--host", listen.host,
                 "Address to listen on; one that others can reach needs a key and TLS");
  app.add_option("--port,-p", o.port, "Port to listen on; 0: any free one, which is printed")
      ->transform(in_range(int64_t{0}, int64_t{65535}));
  app.add_option("--api-key-file", o.key_file,
                 "File of keys, one a line; JUNO_API_KEY in the environment holds more, apart by commas");
  app.add_option("--tls-cert", o.tls.certificate, "PEM file of the certificate and its chain");
  app.add_option("--tls-key", o.tls.key, "PEM file of the certificate's key");
  app.add_option("--tls-client-ca", o.tls.client_ca,
                 "PEM file: clients must show a certificate of this authority");
  app.add_flag("--insecure-http", o.server.insecure_http,
               "Listen for others without TLS, because something in front encrypts");
  app.add_option("--cors-origin", o.server.cors_origins,
                 "Origin whose web pages may ask, as https://app.example (may be given several times)")
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--max-body", listen.limits.body, "Bytes of a request at most")
      ->transform(in_range(uint64_t{1024}, uint64_t{1} << 32));
  app.add_option("--max-connections", listen.limits.connections, "Connections that may be open; more get 503")
      ->transform(in_range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--grace", o.grace, "Seconds that requests have to finish when the server is told to end")
      ->transform(in_range(0.0, 86400.0));
  app.add_option("--watchdog", o.watchdog,
                 "/health says 503 when work has made no progress for so many seconds")
      ->transform(in_range(0.001, 86400.0));
}

void add_behaviour_part(CLI::App& app, ServeOptions& o) {
  app.add_option("--unknown-fields", o.unknown_fields,
                 "What becomes of a request with a field that is not known")
      ->check(CLI::IsMember({"refuse", "warn"}));
  app.add_flag("--store-responses", o.store_responses,
               "Keep replies of /v1/responses, to be continued by their id");
  app.add_option("--config", o.config, "TOML file of these options, their names without dashes before them");
  app.add_option("--ready-file", o.ready_file,
                 "Write {\"url\", \"port\", \"pid\"} there once requests are taken");
  app.add_flag("--quiet,-q", o.quiet, "No line for each request");
  app.add_flag("--verbose", o.verbose, "More about models and devices");
}

// The variable is wiped: /proc shows what a program was started with.
void read_keys(ServeOptions& o) {
  if (!o.key_file.empty()) {
    take(o.server.keys.add(read_text(o.key_file), o.key_file));
    if (o.server.keys.empty()) fail(Code::kConfig, "[cli] --api-key-file: {} holds no key", o.key_file);
  }
  char* variable = std::getenv("JUNO_API_KEY");
  if (!variable) return;
  const std::string text = variable;
  std::memset(variable, 'x', std::strlen(variable));
  ::unsetenv("JUNO_API_KEY");
  const bool before = !o.server.keys.empty();
  take(o.server.keys.add(text, "JUNO_API_KEY"));
  if (!before && o.server.keys.empty()) fail(Code::kConfig, "[cli] JUNO_API_KEY is set and holds no key");
}

void read_tls(ServeOptions& o) {
  if (o.tls.certificate.empty() != o.tls.key.empty())
    fail(Code::kConfig, "[cli] --tls-cert and --tls-key need each other");
  if (o.tls.certificate.empty() && !o.tls.client_ca.empty())
    fail(Code::kConfig, "[cli] --tls-client-ca needs --tls-cert and --tls-key");
  if (!o.tls.certificate.empty()) o.server.listen.tls = o.tls;
}

std::pair<std::string, std::string> split_pair(const std::string& text, const char* option,
                                               const char* form) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos || equals + 1 == text.size())
    fail(Code::kUsage, "[cli] {}: \"{}\" is not {}", option, printable(text), form);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<api::NamedModel> named_models(const ServeOptions& o, const Log& log) {
  std::vector<api::NamedModel> models;
  const api::SessionOptions common = o.model.opened(log);
  const auto add = [&](const std::string& name) -> api::NamedModel& {
    return models.emplace_back(api::NamedModel{.name = name, .options = common, .how = o.service});
  };
  for (const std::string& text : o.models) {
    const auto [name, path] = split_pair(text, "--model", "NAME=PATH");
    api::NamedModel& model = add(name);
    model.options.model_path = path;
    model.options.model_bytes = {};
  }
  if (!o.model.model_path.empty()) add(std::filesystem::path(o.model.model_path).stem().string());
  if (models.empty()) add("juno-demo");
  for (const std::string& text : o.aliases) {
    const auto [alias, name] = split_pair(text, "--alias", "NAME=MODEL");
    const auto model = std::ranges::find(models, name, &api::NamedModel::name);
    if (model == models.end()) fail(Code::kUsage, "[cli] --alias: there is no model {}", printable(name));
    model->aliases.push_back(alias);
  }
  return models;
}

// Connections are descriptors: as many as the system lets this process have.
void raise_descriptors(int64_t wanted) {
  constexpr rlim_t kOthers = 128;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, static_cast<rlim_t>(wanted) + kOthers));
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Whole or not at all: whoever waits for the file reads it as soon as it is there.
void write_ready(const std::string& path, const server::Server& server) {
  const nlohmann::ordered_json ready = {{"url", server.url()}, {"port", server.port()}, {"pid", ::getpid()}};
  const std::string draft = path + ".new";
  std::ofstream file(draft);
  file << ready.dump() << "\n";
  file.close();
  if (!file || std::rename(draft.c_str(), path.c_str()) != 0)
    fail(Code::kFailed, "[cli] --ready-file: cannot write {}: {}", path, std::strerror(errno));
}

int serve(ServeOptions o) {
  const Log log = stderr_log(o.verbose);
  o.service.sequences = static_cast<int>(o.sequences);
  o.model.session.prompt_lookup = static_cast<int>(o.prompt_lookup);
  o.server.listen.port = static_cast<uint16_t>(o.port);
  o.server.listen.log = log;
  if (!o.quiet) o.server.access.sink = [](Level, const std::string& line) { tell(line); };
  read_keys(o);
  read_tls(o);
  take(server::Server::check(o.server));  // before anything is loaded
  raise_descriptors(o.server.listen.limits.connections);

  const auto seconds = [](double s) {
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(s));
  };
  const auto models = take(api::Models::open(
      named_models(o, log), {.threads = o.model.session.threads, .idle = seconds(o.idle_unload)}));
  server::Metrics metrics;
  server::App app{*models, metrics, o.unknown_fields == "warn", o.store_responses, o.watchdog};
  explain_bus_errors(o.models.empty() ? o.model.model_path : "a model's file");
  EndSignals signals;
  const auto server = take(server::Server::start(std::move(o.server), app));
  tell(fmt::format("juno: listening on {}", server->url()));
  if (!o.ready_file.empty()) write_ready(o.ready_file, *server);

  signals.wait();
  tell("juno: ending; a second signal ends at once");
  server->drain(std::chrono::duration<double>(o.grace), signals.second());
  if (signals.second()) std::_Exit(static_cast<int>(Code::kInterrupted));
  models->stop();
  server->drain(std::chrono::seconds(1), signals.second());  // what they are told still goes out
  server->stop();
  return 0;
}

}  // namespace

Run add_serve(CLI::App& app) {
  auto o = std::make_shared<ServeOptions>();
  add_model_part(app, *o);
  add_network_part(app, *o);
  add_behaviour_part(app, *o);
  return [o, &app] {
    if (!o->config.empty()) apply_config(app, o->config);
    return serve(std::move(*o));
  };
}

}  // namespace juno::cli
