// SPDX-License-Identifier: Apache-2.0
// POST /v1/tokenize, POST /v1/detokenize
#include <fmt/format.h>

#include "base/utf8.h"
#include "server/openai/request.h"
#include "server/openai/routes.h"
#include "server/openai/tables.h"
#include "tokenizer/tokenizer.h"

namespace juno::server {
namespace {

Json piece_json(std::string_view piece) {
  if (is_utf8(piece)) return std::string(piece);
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<uint8_t>(c));
  return bytes;
}

void run_tokenize(App& app, const std::shared_ptr<Exchange>& exchange) {
  const Body body = read_body(app, *exchange, tokenize_fields());
  const Values& values = body.values;
  const auto service = find_model(app, values.text("model"));
  const auto& tokenizer = service->tokenizer();
  const auto ids = tokenizer.encode(
      *values.text("content"),
      {.parse_special = values.flag("parse_special", true), .add_special = values.flag("add_special")});
  Json tokens = Json::array();
  for (const int32_t id : ids) {
    if (values.flag("with_pieces"))
      tokens.push_back({{"id", id}, {"piece", piece_json(tokenizer.piece(id))}});
    else tokens.push_back(id);
  }
  exchange->reply(
      {.body = to_text({{"tokens", std::move(tokens)}, {"count", ids.size()}}), .headers = body.headers});
}

void run_detokenize(App& app, const std::shared_ptr<Exchange>& exchange) {
  const Body body = read_body(app, *exchange, detokenize_fields());
  const auto service = find_model(app, body.values.text("model"));
  const Json& tokens = *body.values.find("tokens");
  std::vector<int32_t> ids;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = tokens[i].get<int64_t>();
    if (id < 0 || id >= service->info().vocab) {
      throw bad("invalid_value", fmt::format("tokens[{}]", i),
                fmt::format("'tokens[{}]' is {}: token ids are 0 to {}", i, id, service->info().vocab - 1));
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  exchange->reply(
      {.body = to_text({{"content", service->tokenizer().decode(ids, true)}}), .headers = body.headers});
}

}  // namespace

void tokenize(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_tokenize(app, exchange); });
}

void detokenize(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_detokenize(app, exchange); });
}

}  // namespace juno::server
