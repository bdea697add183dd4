// SPDX-License-Identifier: Apache-2.0
#include "cli/server_partner.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/reply.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

Json parsed(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    fail(Code::kFailed, "[cli] the server answers with something that is no JSON object");
  return json;
}

// The names of /v1/models.
std::vector<std::string> names_in(const Json& list) {
  std::vector<std::string> names;
  if (const auto data = list.find("data"); data != list.end() && data->is_array())
    for (const Json& model : *data)
      if (model.is_object() && model.contains("id") && model["id"].is_string()) names.push_back(model["id"]);
  if (names.empty()) fail(Code::kFailed, "[cli] the server names no model");
  return names;
}

// What is off is left out, so that servers which do not know it do not mind.
Json request_of(const api::Generation& how) {
  const api::SamplingParams& s = how.sampling;
  Json request = {{"temperature", s.temperature}, {"top_p", s.top_p}, {"seed", s.seed}};
  if (s.top_k != 0) request["top_k"] = s.top_k;
  if (s.min_p != 0) request["min_p"] = s.min_p;
  if (s.repeat_penalty != 1) request["repetition_penalty"] = s.repeat_penalty;
  if (s.presence_penalty != 0) request["presence_penalty"] = s.presence_penalty;
  if (s.frequency_penalty != 0) request["frequency_penalty"] = s.frequency_penalty;
  for (const auto& [id, bias] : s.logit_bias) request["logit_bias"][fmt::to_string(id)] = bias;
  if (!how.stop.empty()) request["stop"] = how.stop;
  return request;
}

// What comes in a stream, put together.
struct Streamed {
  std::string text, pending, reason, error;
  bool reasoning = false, done = false;
  int64_t prompt = 0, cached = 0, made = 0;
  std::optional<Clock::time_point> first;
  Clock::time_point last;

  void push(std::string_view bytes) {
    pending += bytes;
    for (size_t end; (end = pending.find('\n')) != pending.npos; pending.erase(0, end + 1)) {
      std::string_view line(pending.data(), end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.starts_with("data:")) continue;  // a comment, or the end of an event: ours have one line each
      line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
      if (line == "[DONE]") done = true;
      else read_event(line);
    }
  }

 private:
  void read_event(std::string_view text);
  void take_event(const Json& event);
  void take_text(const Json& from, const char* name, bool is_reasoning);
};

// What a server says is believed as little as any input: a member of another type is an error of ours.
void Streamed::read_event(std::string_view text) {
  try {
    take_event(parsed(text));
  } catch (const Json::exception&) {
    fail(Code::kFailed, "[cli] the server's stream is not that of OpenAI's API: {}",
         printable(text.substr(0, 200)));
  }
}

void Streamed::take_event(const Json& event) {
  if (event.contains("error")) {
    error = event["error"].value("message", "it does not say what is wrong");
    return;
  }
  if (event.contains("usage") && event["usage"].is_object()) {
    const Json& usage = event["usage"];
    prompt = usage.value("prompt_tokens", int64_t{0});
    made = usage.value("completion_tokens", int64_t{0});
    if (usage.contains("prompt_tokens_details") && usage["prompt_tokens_details"].is_object())
      cached = usage["prompt_tokens_details"].value("cached_tokens", int64_t{0});
  }
  if (!event.contains("choices") || event["choices"].empty()) return;
  const Json& choice = event["choices"][0];
  const Json& from = choice.contains("delta") ? choice["delta"] : choice;
  take_text(from, "reasoning_content", true);
  take_text(from, choice.contains("delta") ? "content" : "text", false);
  if (choice.contains("finish_reason") && choice["finish_reason"].is_string())
    reason = choice["finish_reason"];
}

// Reasoning is shown and not kept: the next turn does without it.
void Streamed::take_text(const Json& from, const char* name, bool is_reasoning) {
  if (!from.contains(name) || !from[name].is_string()) return;
  const std::string piece = from[name];
  if (piece.empty()) return;
  last = Clock::now();
  if (!first) first = last;
  if (reasoning != is_reasoning) show(is_reasoning ? "(thinks: " : ")\n\n");
  reasoning = is_reasoning;
  show(piece);
  if (!is_reasoning) text += piece;
}

std::string figures(const Streamed& s, Clock::time_point begun, bool cancelled) {
  std::string line =
      fmt::format("{} token{} in {:.2f} s", s.made, s.made == 1 ? "" : "s", seconds(Clock::now() - begun));
  if (s.made > 1 && s.first && s.last > *s.first)
    line += fmt::format(" · {:.1f} t/s", static_cast<double>(s.made - 1) / seconds(s.last - *s.first));
  if (s.first) line += fmt::format(" · first after {:.2f} s", seconds(*s.first - begun));
  line += fmt::format(" · prompt {} tokens ({} cached)", s.prompt, s.cached);
  if (s.reason == "length") line += " · cut at the limit of tokens";
  return cancelled ? "interrupted" : line;  // a stream that was left says no figures
}

}  // namespace

ServerPartner::ServerPartner(ServerAddress address, const std::string& model) : client_(std::move(address)) {
  const std::vector<std::string> names = names_in(parsed(client_.fetch("/v1/models")));
  model_ = model.empty() ? names.front() : model;
  // An alias need not stand in the list: the server knows.
  if (!model.empty() && std::ranges::find(names, model) == names.end() &&
      client_.ask("/v1/models/" + model).status == 404)
    fail(Code::kUsage, "[cli] --model: the server has no {}; it has {}", printable(model),
         printable(fmt::format("{}", fmt::join(names, ", "))));
}

std::string ServerPartner::about() const { return fmt::format("{} at {}", printable(model_), client_.url()); }

void ServerPartner::check(const api::Generation& how) {
  const api::SamplingParams& s = how.sampling;
  const api::SamplingParams off;
  if (s.typical_p != off.typical_p) fail(Code::kUsage, "[cli] typical-p: the server's API has no such field");
  if (s.repeat_last_n != off.repeat_last_n)
    fail(Code::kUsage, "[cli] repeat-last-n: the server's API has no such field");
  if (s.temperature > 2) fail(Code::kUsage, "[cli] temperature {} is not in 0 to 2", s.temperature);
  if (s.seed > INT64_MAX) fail(Code::kUsage, "[cli] seed {} is not in 0 to {}", s.seed, INT64_MAX);
  if (how.max_tokens == 0) fail(Code::kUsage, "[cli] max-tokens 0: the server wants at least 1");
  if (how.stop.size() > 4) fail(Code::kUsage, "[cli] stop: {} texts, the server takes 4", how.stop.size());
}

Answer ServerPartner::answer(std::span<const api::Message> messages, const api::Generation& how) {
  Json request = request_of(how);
  for (const api::Message& m : messages)
    request["messages"].push_back({{"role", m.role}, {"content", m.content}});
  if (how.max_tokens > 0) request["max_completion_tokens"] = how.max_tokens;
  return stream("/v1/chat/completions", std::move(request), how);
}

Answer ServerPartner::go_on(const std::string& text, const api::Generation& how) {
  Json request = request_of(how);
  request["prompt"] = text;
  request["parse_special"] = false;
  if (how.max_tokens > 0) request["max_tokens"] = how.max_tokens;
  return stream("/v1/completions", std::move(request), how);
}

Answer ServerPartner::stream(const std::string& path, Json request, const api::Generation& how) {
  check(how);
  request["model"] = model_;
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  Streamed got;
  const auto begun = Clock::now();
  const Interruptible scope(client_);
  const std::string body = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  const HttpClient::Reply reply = client_.ask(path, body, [&](std::string_view bytes) { got.push(bytes); });
  if (!reply.cancelled) HttpClient::refuse(reply);
  if (!got.error.empty()) fail(Code::kFailed, "[cli] the server ends the answer: {}", printable(got.error));
  if (!reply.cancelled && !got.done) fail(Code::kFailed, "[cli] the answer broke off");
  prompt_tokens_ += got.prompt;
  cached_tokens_ += got.cached;
  new_tokens_ += got.made;
  return {got.text, reply.cancelled, figures(got, begun, reply.cancelled)};
}

void ServerPartner::show_stats() {
  tell(fmt::format("  prompts    {} tokens ({} cached)", prompt_tokens_, cached_tokens_));
  tell(fmt::format("  replies    {} tokens", new_tokens_));
  tell(fmt::format("  server     {}", client_.url()));
}

}  // namespace juno::cli
