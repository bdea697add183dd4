// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace juno::cli {

#define JUNO_COMMANDS(X)                                                             \
  X(local, "", "Chat with a model in this terminal")                                 \
  X(serve, "", "Serve models over HTTP, as OpenAI's and Anthropic's clients expect") \
  X(chat, "", "Chat with a model that a running server has")                         \
  X(ps, "", "Show what a running server does")                                       \
  X(inspect, "gguf-info", "Show what is in a GGUF file and the memory it needs")     \
  X(tokenize, "", "Turn the text on stdin into token ids")                           \
  X(detokenize, "", "Turn the token ids on stdin into text")                         \
  X(render, "", "Render a conversation with a chat template")                        \
  X(logits, "", "Print the logits that a model gives for token ids")                 \
  X(perplexity, "", "Measure how well a model predicts a text")                      \
  X(bench, "", "Measure how fast models run here")                                   \
  X(gate, "", "Prove that a GPU computes the bits that the CPU does")                \
  X(doctor, "", "Show what this machine offers and what stands in the way")

#define X(name, alias, help) Run add_##name(CLI::App&);
JUNO_COMMANDS(X)
#undef X

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
#define X(name, alias, help) {#name, alias, help, add_##name},
      JUNO_COMMANDS(X)
#undef X
  };
  return kCommands;
}

}  // namespace juno::cli
