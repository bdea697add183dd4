// SPDX-License-Identifier: Apache-2.0
#include "cli/session_partner.h"

#include "cli/command.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/reply.h"

namespace juno::cli {
namespace {

Answer answer_of(const api::Reply& reply, const api::Info& info) {
  return {reply.text, reply.reason == api::FinishReason::kCancelled, end_line(reply, info)};
}

}  // namespace

std::string SessionPartner::about() const {
  const api::Info& info = session_.info();
  return fmt::format("{} · context {} · {} {}, {} thread{}",
                     printable(info.name.empty() ? info.path : info.name), info.context, info.backend,
                     info.isa, info.threads, info.threads == 1 ? "" : "s");
}

Answer SessionPartner::answer(std::span<const api::Message> messages, const api::Generation& how) {
  const Interruptible scope(session_);
  return answer_of(take(session_.chat(messages, how, show)), session_.info());
}

Answer SessionPartner::go_on(const std::string& text, const api::Generation& how) {
  const Interruptible scope(session_);
  return answer_of(take(session_.complete(text, how, show)), session_.info());
}

void SessionPartner::show_stats() {
  const api::Stats s = session_.total();
  const api::Info& i = session_.info();
  const api::Memory memory = session_.memory(i.context);
  tell(fmt::format("  prompts    {} tokens ({} cached) in {:.2f} s, {} of weights read", s.prompt_tokens,
                   s.cached_tokens, s.prefill_seconds, human_bytes(s.prefill_bytes)));
  tell(fmt::format("  replies    {} tokens in {:.2f} s, {} of weights read", s.new_tokens, s.decode_seconds,
                   human_bytes(s.decode_bytes)));
  tell(fmt::format("  memory     weights {} (mapped), keys and values {} for {} positions",
                   human_bytes(memory.weights), human_bytes(memory.kv), i.context));
  tell(fmt::format("  ran on     {} {}, {} threads, activations {}; {} operations elsewhere", i.backend,
                   i.isa, i.threads, i.activations, s.declined));
  if (s.traffic.launches > 0) tell("  device     " + traffic_text(s));
  for (const Declined& d : session_.counters().declined)
    tell(fmt::format("  elsewhere  {} {} of {} in {}, {} times: {}", d.op, d.type, fmt::join(d.shape, "×"),
                     d.stage, d.count, d.reason));
}

}  // namespace juno::cli
