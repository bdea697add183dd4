// SPDX-License-Identifier: Apache-2.0
#include "server/own_routes.h"

#include <nlohmann/json.hpp>

#include "api/models.h"
#include "api/version.h"
#include "server/errors.h"

namespace juno::server {
namespace {

using Json = nlohmann::ordered_json;

HttpReply json_reply(const Json& json) {
  return {.body = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

const char* state_name(api::ModelState::State state) {
  using State = api::ModelState::State;
  return state == State::kLoaded ? "loaded" : state == State::kLoading ? "loading" : "unloaded";
}

Json device_json(const api::Info::Device& device) {
  return {{"backend", device.backend},
          {"name", device.name},
          {"first_layer", device.first},
          {"end_layer", device.last},
          {"bytes", device.estimate}};
}

// [{name, state, context, …}], of those that are loaded with their devices and load.
Json models_json(api::Models& models) {
  Json list = Json::array();
  const auto loaded = models.loaded();
  for (const api::ModelState& state : models.list()) {
    Json model = {{"name", state.name}, {"state", state_name(state.state)}, {"context", state.context}};
    if (state.fault) model["fault"] = state.fault->message;
    for (const auto& [name, service] : loaded) {
      if (name != state.name) continue;
      const api::Load load = service->load();
      const api::Info& info = service->info();
      model["waiting"] = load.waiting;
      model["running"] = load.running;
      model["sequences"] = load.sequences;
      model["threads"] = info.threads;
      model["isa"] = info.isa;
      model["activations"] = info.activations;
      model["devices"] = Json::array();
      for (const auto& device : info.devices) model["devices"].push_back(device_json(device));
    }
    list.push_back(std::move(model));
  }
  return list;
}

}  // namespace

void health(App& app, const std::shared_ptr<Exchange>& exchange) {
  for (const auto& [name, service] : app.models.loaded())
    if (const double seconds = service->load().since_progress; seconds >= app.watchdog)
      return exchange->reply(
          error_reply(503, kServerError, "server_overloaded", {},
                      fmt::format("{} has made no progress for {:.3g} s.", name, seconds)));
  exchange->reply(
      json_reply({{"status", "ok"}, {"version", api::version_text()}, {"models", models_json(app.models)}}));
}

void metrics(App& app, const std::shared_ptr<Exchange>& exchange) {
  std::vector<ModelFigures> figures;
  for (const auto& [name, service] : app.models.loaded())
    figures.push_back({name, service->load(), service->counters()});
  exchange->reply({.type = "text/plain; version=0.0.4; charset=utf-8", .body = app.metrics.text(figures)});
}

void props(App& app, const std::shared_ptr<Exchange>& exchange) {
  Json models = Json::array();
  for (const api::ModelState& state : app.models.list())
    models.push_back({{"name", state.name},
                      {"aliases", state.aliases},
                      {"state", state_name(state.state)},
                      {"context", state.context},
                      {"chat", state.chat},
                      {"embeddings", state.embeddings},
                      {"host_bytes", state.host_bytes}});
  exchange->reply(json_reply({{"version", api::version_text()},
                              {"unknown_fields", app.warn_unknown ? "warn" : "refuse"},
                              {"store_responses", app.store_responses},
                              {"models", models}}));
}

void list_sessions(App& app, const std::shared_ptr<Exchange>& exchange) {
  Json list = Json::array();
  for (const auto& [name, service] : app.models.loaded()) {
    const auto sessions = service->sessions(exchange->request().tenant);
    if (!sessions) continue;  // it is being closed, and they with it
    for (const api::SessionState& session : *sessions)
      list.push_back({{"object", "session"},
                      {"id", session.name},
                      {"model", name},
                      {"tokens", session.tokens},
                      {"idle_seconds", session.idle_seconds}});
  }
  exchange->reply(json_reply({{"object", "list"}, {"data", list}}));
}

void end_session(App& app, const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const std::string& id = request.parameters.front();
  bool ended = false;
  for (const auto& [name, service] : app.models.loaded())
    ended = service->end_session(request.tenant, id).has_value() || ended;
  if (!ended)
    return exchange->reply(error_reply(404, kInvalidRequest, "session_not_found", {},
                                       fmt::format("There is no session {}.", id)));
  exchange->reply(json_reply({{"object", "session"}, {"id", id}, {"deleted", true}}));
}

}  // namespace juno::server
