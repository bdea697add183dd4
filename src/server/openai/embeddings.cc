// SPDX-License-Identifier: Apache-2.0
// POST /v1/embeddings
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "server/openai/completion_prompt.h"
#include "server/openai/request.h"
#include "server/openai/routes.h"
#include "server/openai/tables.h"

namespace juno::server {
namespace {

static_assert(std::endian::native == std::endian::little);

std::string base64(const std::vector<float>& values) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) {
      return i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u;
    };
    const uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kLetters[three >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// The first so many, of unit length again.
void cut(std::vector<float>& values, size_t dimensions) {
  values.resize(dimensions);
  double squares = 0;
  for (const float v : values) squares += static_cast<double>(v) * v;
  if (squares <= 0) return;
  const double scale = 1 / std::sqrt(squares);
  for (float& v : values) v = static_cast<float>(v * scale);
}

void run_embeddings(App& app, const std::shared_ptr<Exchange>& exchange) {
  const Body body = read_body(app, *exchange, embedding_fields());
  const Values& values = body.values;
  log_user(values, *exchange);
  const std::string model = *values.text("model");
  const auto service = find_model(app, model);
  const int64_t size = service->embedding_size();
  if (size == 0)
    throw bad("unsupported_value", "model", fmt::format("the model '{}' gives no embeddings", model));
  const int64_t dimensions = values.integer("dimensions").value_or(size);
  if (dimensions > size) {
    throw bad("integer_above_max_value", "dimensions",
              fmt::format("'dimensions' is {}, the greatest value allowed is {}", dimensions, size));
  }
  api::EmbeddingWork work;
  work.tenant = exchange->request().tenant;
  work.pooling = values.text("x_juno_pooling").value_or("");
  int64_t tokens = 0;
  for (CompletionPrompt& input : read_prompts(values, "input", *service, false)) {
    const auto count = static_cast<int64_t>(input.ids.size());
    check_length(*service, count, input.param);
    tokens += count;
    work.inputs.push_back(std::move(input.ids));
  }
  auto vectors = service->embed(work);
  if (!vectors && vectors.error().code == Code::kBusy)
    throw Refusal(429, kRateLimit, "rate_limit_exceeded", {}, vectors.error().message);
  if (!vectors) throw refusal_of(vectors.error());

  Json data = Json::array();
  for (size_t i = 0; i < vectors->size(); ++i) {
    std::vector<float>& vector = (*vectors)[i];
    if (dimensions < size) cut(vector, static_cast<size_t>(dimensions));
    const bool packed = values.text("encoding_format") == "base64";
    data.push_back(
        {{"object", "embedding"}, {"index", i}, {"embedding", packed ? Json(base64(vector)) : Json(vector)}});
  }
  const Json reply = {{"object", "list"},
                      {"data", std::move(data)},
                      {"model", model},
                      {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
  exchange->reply({.body = to_text(reply), .headers = body.headers});
}

}  // namespace

void embeddings(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer(exchange, [&] { run_embeddings(app, exchange); });
}

}  // namespace juno::server
