// SPDX-License-Identifier: Apache-2.0
// A reply on its way to the terminal, the line that follows it, and its JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "api/session.h"

namespace juno::cli {

// "24 tokens in 0.31 s · 77.4 t/s · 1.9 GB/s of weights · cpu avx512, 2 threads · 0 operations elsewhere"
std::string end_line(const api::Reply& reply, const api::Info& info);

// {text, ids, finish_reason, prompt_tokens, cached_tokens, tokens, seconds: {prefill, decode},
// tokens_per_second,
//  weight_bytes_per_second, backend, isa, threads, activations, declined, declined_operations, device:
//  {launches, launch_failures, bytes_written, bytes_read, per_token}, seed}
nlohmann::ordered_json reply_json(const api::Reply& reply, const api::Session& session, uint64_t seed);

// What devices were given to do, and what crossed the border to them.
std::string traffic_text(const api::Stats& stats);

// A piece of a reply to stdout. On a terminal its control characters are shown, not obeyed.
void show(std::string_view piece);

const char* reason_text(api::FinishReason reason);

}  // namespace juno::cli
