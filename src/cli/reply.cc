// SPDX-License-Identifier: Apache-2.0
#include "cli/reply.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/counters.h"
#include "cli/command.h"
#include "cli/format.h"

namespace juno::cli {
namespace {

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

// The first token of a reply comes out of the prompt's last pass, so decoding made one less.
double decode_rate(const api::Stats& s) {
  return per_second(static_cast<double>(s.new_tokens - 1), s.decode_seconds);
}

int64_t tokens_of(const api::Stats& s) {
  return std::max<int64_t>(1, s.prompt_tokens - s.cached_tokens + s.new_tokens);
}

}  // namespace

std::string traffic_text(const api::Stats& s) {
  const auto per_token = [tokens = tokens_of(s)](uint64_t n) {
    return static_cast<double>(n) / static_cast<double>(tokens);
  };
  const Traffic& t = s.traffic;
  std::string text =
      fmt::format("{} launches ({:.1f} a token), {} to the device, {} from it ({} and {} a token)",
                  t.launches, per_token(t.launches), human_bytes(t.written), human_bytes(t.read),
                  human_bytes(static_cast<uint64_t>(per_token(t.written))),
                  human_bytes(static_cast<uint64_t>(per_token(t.read))));
  if (t.failures > 0) text += fmt::format(", {} launches FAILED", t.failures);
  return text;
}

void show(std::string_view piece) { print(isatty(STDOUT_FILENO) ? harmless(piece) : std::string(piece)); }

const char* reason_text(api::FinishReason reason) {
  static constexpr const char* kText[] = {"stop", "length", "cancelled", "error"};
  return kText[static_cast<size_t>(reason)];
}

std::string end_line(const api::Reply& reply, const api::Info& info) {
  const api::Stats& s = reply.stats;
  std::string line = fmt::format("{} token{} in {:.2f} s", s.new_tokens, s.new_tokens == 1 ? "" : "s",
                                 s.prefill_seconds + s.decode_seconds);
  if (s.new_tokens > 1)
    line += fmt::format(" · {:.1f} t/s · {:.2f} GB/s of weights", decode_rate(s),
                        per_second(static_cast<double>(s.decode_bytes), s.decode_seconds) / 1e9);
  line += fmt::format(" · prompt {} tokens ({} cached) in {:.2f} s", s.prompt_tokens, s.cached_tokens,
                      s.prefill_seconds);
  if (s.drafted_tokens > 0)
    line += fmt::format(" · {} of {} guesses right", s.accepted_tokens, s.drafted_tokens);
  line += fmt::format(" · {} {}, {} thread{} · {} operations elsewhere", info.backend, info.isa, info.threads,
                      info.threads == 1 ? "" : "s", s.declined);
  if (s.traffic.launches > 0) line += " · " + traffic_text(s);
  if (reply.reason == api::FinishReason::kLength) line += " · cut at the limit of tokens";
  if (reply.reason == api::FinishReason::kCancelled) line += " · interrupted";
  return line;
}

nlohmann::ordered_json reply_json(const api::Reply& reply, const api::Session& session, uint64_t seed) {
  const api::Stats& s = reply.stats;
  const api::Info& info = session.info();
  auto device = api::traffic_json(s.traffic);
  const auto tokens = static_cast<double>(tokens_of(s));
  device["per_token"] = {{"launches", static_cast<double>(s.traffic.launches) / tokens},
                         {"bytes_written", static_cast<double>(s.traffic.written) / tokens},
                         {"bytes_read", static_cast<double>(s.traffic.read) / tokens}};
  return {{"text", reply.text},
          {"ids", reply.ids},
          {"finish_reason", reason_text(reply.reason)},
          {"prompt_tokens", s.prompt_tokens},
          {"cached_tokens", s.cached_tokens},
          {"tokens", s.new_tokens},
          {"drafted_tokens", s.drafted_tokens},
          {"accepted_tokens", s.accepted_tokens},
          {"seconds", {{"prefill", s.prefill_seconds}, {"decode", s.decode_seconds}}},
          {"tokens_per_second", s.new_tokens > 1 ? decode_rate(s) : 0},
          {"weight_bytes_per_second", per_second(static_cast<double>(s.decode_bytes), s.decode_seconds)},
          {"backend", info.backend},
          {"isa", info.isa},
          {"threads", info.threads},
          {"activations", info.activations},
          {"declined", s.declined},
          {"declined_operations", api::declined_json(session.counters())},
          {"device", std::move(device)},
          {"seed", seed}};
}

}  // namespace juno::cli
