// SPDX-License-Identifier: Apache-2.0
#include "engine/speculation.h"

#include <algorithm>

#include "engine/engine.h"

namespace juno::engine {

void look_up(std::span<const int32_t> tokens, size_t most, std::vector<int32_t>& guesses) {
  size_t best = kLeastMatch - 1, after = 0;
  for (size_t end = tokens.size() - std::min<size_t>(tokens.size(), 1); end > best && best < kMostMatch;
       --end) {
    size_t same = 0;  // tokens before `end` that are also the last ones
    while (same < std::min(end, kMostMatch) && tokens[end - 1 - same] == tokens[tokens.size() - 1 - same])
      ++same;
    if (same > best) {
      best = same;
      after = end;
    }
  }
  if (after == 0) return;
  const auto found = tokens.subspan(after, std::min(most, tokens.size() - after));
  guesses.insert(guesses.end(), found.begin(), found.end());
}

Result<void> Draft::guess(std::span<Sequence* const> sequences, int64_t most) {
  return guard([&] {
    // A request that the draft refuses, such as one beyond its context, has no guesses.
    for (Sequence* s : sequences) (void)engine_.submit(request(*s, most));
    while (take(engine_.step())) continue;
  });
}

// Where the sequence stands, as a request of its own.
Request Draft::request(Sequence& s, int64_t most) const {
  const Request& r = s.request;
  Request request{.prompt = s.tokens,
                  .max_tokens = std::min(most, s.may_guess()),
                  .sampling = r.sampling,
                  .stop_ids = r.stop_ids,
                  .min_tokens = std::max<int64_t>(0, r.min_tokens - s.finish.new_tokens),
                  .ignore_end = r.ignore_end,
                  .grammar = r.grammar};
  request.sampling.logprobs = false;
  request.salt = r.salt;
  request.on_token = [&s](const Token& token) {
    s.guesses.push_back(token.id);
    return true;
  };
  return request;
}

}  // namespace juno::engine
