// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/format.h"
#include "cli/server_options.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PsOptions {
  ServerChoice server;
  bool json = false;
};

// A line of /metrics: its name, with the labels as they stand there, and its value.
using Figures = std::map<std::string, double>;

Figures parse_metrics(std::string_view text) {
  Figures figures;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t gap = line.rfind(' ');
    if (line.starts_with('#') || gap == line.npos) continue;
    double value = 0;
    const std::string_view number = line.substr(gap + 1);
    if (std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc())
      figures[std::string(line.substr(0, gap))] = value;
  }
  return figures;
}

// name{model="…"} or name{model="…",key="value"}
double figure(const Figures& figures, const std::string& name, const std::string& model,
              const std::string& more = "") {
  const auto found = figures.find(fmt::format("{}{{model=\"{}\"{}}}", name, model, more));
  return found == figures.end() ? 0 : found->second;
}

// One line a model: text of each column.
using Row = std::vector<std::string>;

const Row kColumns = {"MODEL", "STATE",  "CONTEXT", "RUNNING", "WAITING", "PAGES",
                      "ENDED", "FAILED", "READ",    "WRITTEN", "MEMORY"};

Row row_of(const Json& model, const Figures& figures) {
  const std::string name = model.value("name", "?");
  const auto count = [&](const std::string& metric, const std::string& more = "") {
    return human_count(static_cast<uint64_t>(figure(figures, metric, name, more)));
  };
  uint64_t bytes = 0;
  if (model.contains("devices"))
    for (const Json& device : model["devices"]) bytes += device.value("bytes", uint64_t{0});
  const auto number = [&](const char* key) { return model.contains(key) ? model[key].dump() : "-"; };
  const bool loaded = model.value("state", "") == "loaded";
  return {printable(name),
          model.value("state", "?"),
          number("context"),
          number("running"),
          number("waiting"),
          loaded
              ? count("juno_kv_pages", ",state=\"used\"") + "/" + count("juno_kv_pages", ",state=\"total\"")
              : "-",
          count("juno_requests_total", ",outcome=\"finished\""),
          count("juno_requests_total", ",outcome=\"failed\""),
          count("juno_prompt_tokens_total"),
          count("juno_new_tokens_total"),
          loaded ? human_bytes(bytes) : "-"};
}

void print_table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(kColumns.size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); i++)
      line += i < 2 ? fmt::format("{:<{}}  ", row[i], widths[i]) : fmt::format("{:>{}}  ", row[i], widths[i]);
    print(line.substr(0, line.find_last_not_of(' ') + 1) + "\n");
  }
}

int print_models(const PsOptions& o) {
  ServerAddress address = o.server.with_key();
  address.patience = 30;
  HttpClient client(std::move(address));
  const HttpClient::Reply reply = client.ask("/health");  // 503 has news too
  const Json health = Json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
  if (reply.status != 503) HttpClient::refuse(reply);
  if (!health.is_object()) fail(Code::kFailed, "[cli] {} is no server of ours", client.url());
  const Figures figures = parse_metrics(client.fetch("/metrics"));
  if (o.json) {
    print(Json{{"url", client.url()}, {"status", reply.status}, {"health", health}, {"metrics", figures}}
              .dump() +
          "\n");
    return reply.status == 503;
  }
  const std::string state =
      health.contains("error") ? health["error"].value("message", "?") : health.value("status", "?");
  const auto resident = figures.find("process_resident_memory_bytes");
  const std::string version = health.value("version", "?");  // the rest is for --json
  print(fmt::format("{} · {} · {}", client.url(), printable(state),
                    printable(version.substr(0, version.find(',')))));
  if (resident != figures.end())
    print(fmt::format(" · {} resident", human_bytes(static_cast<uint64_t>(resident->second))));
  print("\n");
  std::vector<Row> rows = {kColumns};
  if (health.contains("models"))
    for (const Json& model : health["models"]) rows.push_back(row_of(model, figures));
  if (rows.size() > 1) print_table(rows);
  return reply.status == 503;
}

int ps(const PsOptions& o) {
  try {
    return print_models(o);
  } catch (const Json::exception&) {
    fail(Code::kFailed, "[cli] {} is no server of ours: it tells of itself otherwise", o.server.address.url);
  }
}

}  // namespace

Run add_ps(CLI::App& app) {
  auto o = std::make_shared<PsOptions>();
  add_server_options(app, o->server);
  app.add_flag("--json", o->json, "Everything that /health and /metrics say, as one JSON object");
  return [o] { return ps(*o); };
}

}  // namespace juno::cli
