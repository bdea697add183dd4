// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template, rendered with a small conversation: no crash, no leak, within the limits.
#include "tokenizer/chat_template.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto kConversation = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße <|im_end|>"},
                 {"role": "assistant", "content": null, "tool_calls": [{"id": "a1", "function": {"name": "f", "arguments": {"x": 1.5}}}]},
                 {"role": "tool", "content": [{"type": "text", "text": "ok"}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]})");
  auto parsed = juno::tokenizer::ChatTemplate::parse({reinterpret_cast<const char*>(data), size}, "t");
  if (!parsed) return 0;
  juno::tokenizer::ChatInputs in;
  in.messages = &kConversation["messages"];
  in.tools = &kConversation["tools"];
  in.bos_token = "<s>";
  in.eos_token = "</s>";
  auto rendered = parsed->render(in);
  if (rendered && rendered->text().size() > (1 << 20)) std::abort();
  return 0;
}
