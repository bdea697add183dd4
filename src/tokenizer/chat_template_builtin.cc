// SPDX-License-Identifier: Apache-2.0
// Templates by name, for model files that carry none. Each follows the published prompt format of its family.
#include "tokenizer/chat_template.h"

namespace juno::tokenizer {

namespace {

constexpr std::string_view kChatml = R"J({%- for message in messages -%}
{{ '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\n' }}
{%- endif -%}
)J";

constexpr std::string_view kLlama3 = R"J({{- bos_token -}}
{%- for message in messages -%}
{{ '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\n\n' ~ message.content | trim ~ '<|eot_id|>' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif -%}
)J";

// System text stands before the first user text.
constexpr std::string_view kMistral = R"J({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- set turns = messages -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set ns.system = messages[0].content ~ '\n\n' -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{%- for message in turns -%}
  {%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
  {%- elif message.role == 'user' -%}
    {{- '[INST] ' ~ (ns.system if loop.first else '') ~ message.content ~ ' [/INST]' -}}
  {%- elif message.role == 'assistant' -%}
    {{- ' ' ~ message.content ~ eos_token -}}
  {%- else -%}
    {{- raise_exception('Only user, assistant and a first system message are supported') -}}
  {%- endif -%}
{%- endfor -%}
)J";

// Zephyr and TinyLlama share one format.
constexpr std::string_view kZephyr = R"J({%- for message in messages -%}
{{ '<|' ~ message.role ~ '|>\n' ~ message.content ~ eos_token ~ '\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|assistant|>\n' }}
{%- endif -%}
)J";

constexpr std::string_view kPhi3 = R"J({%- for message in messages -%}
{{ '<|' ~ message.role ~ '|>\n' ~ message.content ~ '<|end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|assistant|>\n' }}
{%- endif -%}
)J";

// There is no system role: its text stands before the first user text.
constexpr std::string_view kGemma = R"J({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- set turns = messages -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set ns.system = messages[0].content ~ '\n\n' -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{%- for message in turns -%}
  {%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
  {%- endif -%}
  {{- '<start_of_turn>' -}}
  {{- 'model' if message.role == 'assistant' else message.role -}}
  {{- '\n' ~ (ns.system if loop.first else '') ~ message.content | trim ~ '<end_of_turn>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<start_of_turn>model\n' }}
{%- endif -%}
)J";

// Qwen 2 and 3: ChatML with tools in the system message and tool answers in user turns.
constexpr std::string_view kQwen2 = R"J({%- set system = 'You are a helpful assistant.' -%}
{%- set turns = messages -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set system = messages[0].content -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{{- '<|im_start|>system\n' ~ system -}}
{%- if tools -%}
  {{- '\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>' -}}
  {%- for tool in tools %}{{ '\n' ~ tool | tojson }}{% endfor -%}
  {{- '\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>' -}}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- for message in turns -%}
  {%- if message.role == 'tool' -%}
    {%- if loop.first or loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif -%}
    {{- '\n<tool_response>\n' ~ message.content ~ '\n</tool_response>' -}}
    {%- if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\n' }}{% endif -%}
  {%- else -%}
    {{- '<|im_start|>' ~ message.role -}}
    {%- if message.content %}{{ '\n' ~ message.content }}{% endif -%}
    {%- for call in message.tool_calls or [] -%}
      {%- set call = call.function or call -%}
      {{- '\n<tool_call>\n{"name": "' ~ call.name ~ '", "arguments": ' -}}
      {{- call.arguments if call.arguments is string else call.arguments | tojson -}}
      {{- '}\n</tool_call>' -}}
    {%- endfor -%}
    {{- '<|im_end|>\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\n' }}
{%- endif -%}
)J";

// As Qwen 2, without a default system text; thoughts of earlier answers are left out, and with
// enable_thinking=false the next answer starts with empty ones.
constexpr std::string_view kQwen3 = R"J({%- set turns = messages -%}
{%- set system = '' -%}
{%- if messages and messages[0].role == 'system' -%}
  {%- set system = messages[0].content -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{%- if system or tools -%}
  {{- '<|im_start|>system\n' ~ system -}}
  {%- if tools -%}
    {{- ('\n\n' if system else '') ~ '# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>' -}}
    {%- for tool in tools %}{{ '\n' ~ tool | tojson }}{% endfor -%}
    {{- '\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>' -}}
  {%- endif -%}
  {{- '<|im_end|>\n' -}}
{%- endif -%}
{%- for message in turns -%}
  {%- if message.role == 'tool' -%}
    {%- if loop.first or loop.previtem.role != 'tool' %}{{ '<|im_start|>user' }}{% endif -%}
    {{- '\n<tool_response>\n' ~ message.content ~ '\n</tool_response>' -}}
    {%- if loop.last or loop.nextitem.role != 'tool' %}{{ '<|im_end|>\n' }}{% endif -%}
  {%- else -%}
    {%- set content = message.content or '' -%}
    {%- if message.role == 'assistant' and '</think>' in content -%}
      {%- set content = content.split('</think>')[-1].lstrip('\n') -%}
    {%- endif -%}
    {{- '<|im_start|>' ~ message.role ~ '\n' ~ content -}}
    {%- for call in message.tool_calls or [] -%}
      {%- set call = call.function or call -%}
      {{- ('\n' if content or not loop.first else '') ~ '<tool_call>\n{"name": "' ~ call.name ~ '", "arguments": ' -}}
      {{- call.arguments if call.arguments is string else call.arguments | tojson -}}
      {{- '}\n</tool_call>' -}}
    {%- endfor -%}
    {{- '<|im_end|>\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif -%}
{%- endif -%}
)J";

}  // namespace

const std::vector<BuiltinTemplate>& builtin_templates() {
  static const std::vector<BuiltinTemplate> kTemplates = {
      {"chatml", kChatml}, {"llama3", kLlama3},    {"mistral", kMistral},
      {"zephyr", kZephyr}, {"tinyllama", kZephyr}, {"phi3", kPhi3},
      {"gemma", kGemma},   {"qwen2", kQwen2},      {"qwen3", kQwen3},
  };
  return kTemplates;
}

const BuiltinTemplate* find_builtin(std::string_view name) {
  for (const BuiltinTemplate& t : builtin_templates()) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

std::string builtin_names() {
  std::string out;
  for (const BuiltinTemplate& t : builtin_templates()) out.append(out.empty() ? "" : ", ").append(t.name);
  return out;
}

}  // namespace juno::tokenizer
