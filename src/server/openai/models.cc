// SPDX-License-Identifier: Apache-2.0
// GET /v1/models, GET /v1/models/{id}
#include <fmt/format.h>

#include <algorithm>

#include "server/openai/request.h"
#include "server/openai/routes.h"

namespace juno::server {
namespace {

Json model_json(const api::ModelState& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "juno"},
          {"context_length", model.context},
          {"aliases", model.aliases},
          {"embeddings", model.embeddings},
          {"chat", model.chat},
          {"loaded", model.state == api::ModelState::State::kLoaded}};
}

}  // namespace

void list_models(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] {
    Json data = Json::array();
    for (const api::ModelState& model : app.models.list()) data.push_back(model_json(model));
    exchange->reply({.body = to_text({{"object", "list"}, {"data", std::move(data)}})});
  });
}

void one_model(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] {
    const std::string& id = exchange->request().parameters.at(0);
    for (const api::ModelState& model : app.models.list()) {
      if (model.name != id && std::ranges::find(model.aliases, id) == model.aliases.end()) continue;
      Json found = model_json(model);
      found["id"] = id;
      return exchange->reply({.body = to_text(found)});
    }
    throw Refusal(404, kInvalidRequest, "model_not_found", "model",
                  fmt::format("the model '{}' is not served here", id));
  });
}

}  // namespace juno::server
