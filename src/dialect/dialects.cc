// SPDX-License-Identifier: Apache-2.0
// The list of dialects.
#include <algorithm>
#include <array>

#include "dialect/harmony.h"
#include "dialect/marked.h"

namespace juno::dialect {
namespace {

template <class Form, class Marks>
Calls calls(Calls marks, Marks form) {
  marks.form = std::make_shared<const Form>(form);
  return marks;
}

Calls hermes() {
  return calls<JsonForm, JsonForm::Keys>(
      {"<tool_call>", "\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>"}, {});
}

Calls qwen_xml() {
  return calls<XmlForm, XmlForm::Tags>(
      {"<tool_call>", "\n<function=", "\n</tool_call>\n<tool_call>\n<function=", "\n</tool_call>"},
      {">", "<parameter=", ">", "", "</parameter>", "</function>", true});
}

Calls glm() {
  return calls<XmlForm, XmlForm::Tags>(
      {"<tool_call>", "", "\n<tool_call>", ""},
      {"", "<arg_key>", "</arg_key>", "\n<arg_value>", "</arg_value>", "</tool_call>"});
}

Calls llama3() {
  Calls marks{"<|python_tag|>", "{\"name\": \"", "", ""};
  marks.single = marks.at_start = true;
  return calls<JsonForm, JsonForm::Keys>(marks, {"name", "parameters"});
}

Calls mistral_list() {
  return calls<JsonForm, JsonForm::Keys>({"[TOOL_CALLS]", "[", ", ", "]"}, {"name", "arguments", {}, "id"});
}

Calls mistral_named() {
  return calls<TaggedForm, TaggedForm::Marks>({"[TOOL_CALLS]", "", "[TOOL_CALLS]", ""},
                                              {"", "[CALL_ID]", "[ARGS]"});
}

Calls deepseek() {
  return calls<TaggedForm, TaggedForm::Marks>(
      {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
       "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
       "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"", "", "\n```json\n"});
}

Calls kimi() {
  return calls<TaggedForm, TaggedForm::Marks>(
      {"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_end|><|tool_call_begin|>",
       "<|tool_call_end|><|tool_calls_section_end|>"},
      {"functions.", ":", "<|tool_call_argument_begin|>", true});
}

Calls command_r() {
  return calls<JsonForm, JsonForm::Keys>({"<|START_ACTION|>", "[\n    ", ",\n    ", "\n]<|END_ACTION|>"},
                                         {"tool_name", "parameters", "tool_call_id"});
}

Calls granite_list() { return calls<JsonForm, JsonForm::Keys>({"<|tool_call|>", "[", ", ", "]"}, {}); }

Calls lfm2() {
  return calls<LooseForm, LooseForm::Marks>({"<|tool_call_start|>", "[", ", ", "]<|tool_call_end|>"},
                                            {"(", "=", ", ", ")", ""});
}

Calls gemma4() {
  return calls<LooseForm, LooseForm::Marks>(
      {"<|tool_call>", "call:", "<tool_call|><|tool_call>call:", "<tool_call|>"},
      {"{", ":", ",", "}", "<|\"|>"});
}

constexpr Marks kThink{"<think>", "</think>"};
constexpr Marks kNone;

using Source = std::string_view;
using Signs = std::array<std::string_view, 2>;

// Whether a template's source says all of these.
bool says(Source source, const Signs& signs) {
  return std::all_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return source.find(sign) != Source::npos; });
}

struct Known {
  std::string_view name;
  Signs signs;               // what the templates of the dialect say
  Calls (*calls)();          // null: none
  Marks reasoning, content;  // where the template says the second mark
};

// The first whose signs are all there.
const Known kDialects[] = {
    {"command-r",
     {"<|START_ACTION|>", "tool_name"},
     command_r,
     {"<|START_THINKING|>", "<|END_THINKING|>"},
     {"<|START_RESPONSE|>", "<|END_RESPONSE|>"}},
    {"gemma4", {"<|tool_call>call:", "<tool_call|>"}, gemma4, {"<|channel>thought\n", "<channel|>"}, kNone},
    {"kimi", {"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"}, kimi, kThink, kNone},
    {"deepseek", {"<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"}, deepseek, kThink, kNone},
    {"lfm2", {"<|tool_list_start|>"}, lfm2, kThink, kNone},
    {"mistral", {"[TOOL_CALLS]", "[ARGS]"}, mistral_named, {"[THINK]", "[/THINK]"}, kNone},
    {"mistral-list", {"[TOOL_CALLS]"}, mistral_list, kNone, kNone},
    {"granite-list", {"<|tool_call|>", "tools"}, granite_list, kThink, {"<response>", "</response>"}},
    {"glm", {"<tool_call>", "<arg_key>"}, glm, kThink, kNone},
    {"qwen-xml", {"<tool_call>", "<function="}, qwen_xml, kThink, kNone},
    {"hermes", {"<tool_call>", "\"arguments\""}, hermes, kThink, kNone},
    {"hermes", {"<tool_call>", "\\\"arguments\\\""}, hermes, kThink, kNone},
    {"llama3", {"<|start_header_id|>", "ipython"}, llama3, kThink, kNone},
    {"plain", {}, nullptr, kThink, kNone},
};

}  // namespace

std::unique_ptr<Dialect> find_dialect(std::string_view source) {
  if (says(source, {"<|channel|>analysis", "<|message|>"})) return make_harmony();
  const Known& known = *std::find_if(std::begin(kDialects), std::end(kDialects),
                                     [&](const Known& d) { return says(source, d.signs); });
  MarkedDialect what{known.name, known.calls ? known.calls() : Calls(), {}, {}};
  const auto used = [&](const Marks& marks) {
    const bool said = !marks.open.empty() && source.find(without_blanks_at_end(marks.close)) != Source::npos;
    return said ? marks : kNone;
  };
  what.reasoning = used(known.reasoning);
  what.content = used(known.content);
  return make_marked(std::move(what));
}

}  // namespace juno::dialect
