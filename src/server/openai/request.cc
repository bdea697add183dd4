// SPDX-License-Identifier: Apache-2.0
#include "server/openai/request.h"

#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <random>

#include "api/version.h"
#include "base/hash.h"
#include "server/openai/constraints.h"
#include "tokenizer/tokenizer.h"

namespace juno::server {

void answer(const std::shared_ptr<Exchange>& exchange, const std::function<void()>& body) {
  try {
    body();
  } catch (const Refusal& why) {
    exchange->reply(openai_reply(why));
  } catch (const std::exception& e) {
    exchange->reply(error_reply(500, kServerError, "internal_error", {}, e.what()));
  }
}

Body read_body(App& app, const Exchange& exchange, const Fields& fields,
               const std::function<void(const Json&, const Values&, Check&)>& more) {
  auto json = std::make_shared<const Json>(read_json(exchange.request().body));
  const Values values(*json, fields);
  Check check(app.warn_unknown);
  check.body(*json, fields);
  if (more && json->is_object()) more(*json, values, check);
  check.finish();
  Body out{json, values, {}};
  std::string ignored;
  for (const std::string& name : check.ignored()) {
    app.metrics.ignored_field();
    ignored += (ignored.empty() ? "" : ", ") + name;
  }
  // What clients call a field may hold what a header must not.
  for (char& c : ignored)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  if (!ignored.empty()) out.headers.emplace_back("x-juno-ignored-fields", ignored.substr(0, 4096));
  return out;
}

void check_generation(const Json& body, const Values& values, const char* maximum, Check& check) {
  const auto contradiction = [&](const std::string& name, std::string_view why) {
    check.fault(Step::kContradictions, "invalid_value", name, fmt::format("'{}' {}", name, why));
  };
  const auto is_true = [&](const char* name) { return body.contains(name) && body[name] == true; };
  if (values.has("stream_options") && !is_true("stream"))
    contradiction("stream_options", "asks for something of a stream: stream must be true");
  const Json* most = values.find(maximum);
  const Json* least = values.find("min_tokens");
  if (least && most && least->is_number() && most->is_number() && *least > *most)
    contradiction("min_tokens", fmt::format("is {}, above {}, which is {}", to_text(*least),
                                            values.sent_as(maximum), to_text(*most)));
  if (is_true("ignore_eos") && !most)
    contradiction("ignore_eos", fmt::format("needs {}, or the reply would never end", maximum));
  const Json* format = values.find("response_format");
  const bool formatted =
      format && format->is_object() && format->contains("type") && (*format)["type"] != "text";
  if (values.has("grammar") && (values.has("json_schema") || formatted || values.has("tools")))
    contradiction(values.sent_as("grammar"),
                  "cannot stand beside tools, json_schema or a JSON response_format");
  if (values.has("json_schema") && format)
    contradiction("json_schema", "cannot stand beside response_format");
}

std::shared_ptr<api::Service> find_model(App& app, const std::optional<std::string>& name) {
  std::string wanted = name.value_or("");
  if (!name) {
    const auto all = app.models.list();
    if (all.size() != 1)
      throw bad("missing_required_parameter", "model", "'model' is required: several are served");
    wanted = all[0].name;
  }
  auto service = app.models.get(wanted, api::Models::Wait::kNot);
  if (service) return *service;
  const Error& e = service.error();
  if (e.code == Code::kNotFound)
    throw Refusal(404, kInvalidRequest, "model_not_found", "model",
                  fmt::format("the model '{}' is not served here", wanted));
  if (e.code == Code::kBusy) throw Refusal(503, kServerError, "model_loading", {}, e.message);
  if (e.code == Code::kDevice) throw refusal_of(e);
  throw Refusal(500, kServerError, "internal_error", "model", e.message);  // its file is not what it was
}

namespace {

std::vector<std::pair<int32_t, float>> read_bias(const Json* bias, const api::Service& service) {
  std::vector<std::pair<int32_t, float>> out;
  if (!bias) return out;
  const int32_t size = service.info().vocab;
  for (const auto& [key, value] : bias->items()) {
    int32_t id = -1;
    const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool canonical = fault == std::errc() && std::to_string(id) == key;
    if (!canonical || id < 0 || id >= size) {
      throw bad("invalid_value", "logit_bias",
                fmt::format("'logit_bias' has the key '{}': keys are token ids, 0 to {}", key, size - 1));
    }
    if (value.is_null()) continue;
    out.emplace_back(id, value.get<float>());
  }
  return out;
}

engine::SamplingParams read_sampling(const Values& values, const api::Service& service) {
  engine::SamplingParams out;
  out.temperature = static_cast<float>(values.number("temperature").value_or(1));
  out.top_p = static_cast<float>(values.number("top_p").value_or(1));
  out.top_k = static_cast<int>(values.integer("top_k").value_or(0));
  out.min_p = static_cast<float>(values.number("min_p").value_or(0));
  out.repeat_penalty = static_cast<float>(values.number("repetition_penalty").value_or(1));
  out.repeat_last_n = -1;
  out.presence_penalty = static_cast<float>(values.number("presence_penalty").value_or(0));
  out.frequency_penalty = static_cast<float>(values.number("frequency_penalty").value_or(0));
  out.logit_bias = read_bias(values.find("logit_bias"), service);
  if (const auto seed = values.integer("seed")) {
    out.seed = static_cast<uint64_t>(*seed);
  } else {
    std::random_device random;
    out.seed = static_cast<uint64_t>(random()) << 32 | random();
  }
  return out;
}

}  // namespace

api::Work read_work(const Values& values, const Exchange& exchange, const api::Service& service) {
  api::Work work;
  work.choices = static_cast<int>(values.integer("n").value_or(1));
  work.min_tokens = values.integer("min_tokens").value_or(0);
  work.ignore_end = values.flag("ignore_eos");
  work.sampling = read_sampling(values, service);
  if (const Json* stop = values.find("stop")) {
    if (stop->is_string()) work.stop = {stop->get<std::string>()};
    if (stop->is_array()) work.stop = stop->get<std::vector<std::string>>();
  }
  const std::string priority = values.text("x_juno_priority").value_or("NORMAL");
  work.priority = priority == "HIGH"  ? api::Priority::kHigh
                  : priority == "LOW" ? api::Priority::kLow
                                      : api::Priority::kNormal;
  work.tenant = exchange.request().tenant;
  work.salt = values.text("cache_salt").value_or("");
  work.session = values.text("session_id").value_or("");
  return work;
}

void log_user(const Values& values, Exchange& exchange) {
  for (const char* name : {"user", "safety_identifier"})
    if (const auto user = values.text(name)) exchange.log_user(*user);
}

std::unique_ptr<grammar::Automaton> read_constraint(const Values& values) {
  const auto keep = [](grammar::Automaton a) { return std::make_unique<grammar::Automaton>(std::move(a)); };
  if (const auto text = values.text("grammar"))
    return keep(compile_grammar(*text, values.sent_as("grammar")));
  if (const Json* schema = values.find("json_schema")) return keep(compile_schema(*schema, "json_schema"));
  const Json* format = values.find("response_format");
  if (!format || (*format)["type"] == "text") return nullptr;
  if ((*format)["type"] == "json_object")
    return keep(compile_schema({{"type", "object"}}, "response_format"));
  return keep(compile_schema((*format)["json_schema"]["schema"], "response_format.json_schema.schema"));
}

std::string make_id(std::string_view prefix, int letters) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string out(prefix);
  for (int i = 0; i < letters; ++i) out += kLetters[random() % kLetters.size()];
  return out;
}

int64_t unix_time() { return static_cast<int64_t>(std::time(nullptr)); }

std::string fingerprint() {
  const std::string text = api::version_text();
  Fnv1a hash;
  hash.add(text.data(), text.size());
  return fmt::format("juno-{}-n{}-{:08x}", kVersion, kNumericsVersion, static_cast<uint32_t>(hash.value()));
}

}  // namespace juno::server
