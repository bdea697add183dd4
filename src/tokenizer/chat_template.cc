// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/chat_template.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tokenizer/jinja_interpreter.h"
#include "tokenizer/jinja_parser.h"

namespace juno::tokenizer {

using nlohmann::ordered_json;

namespace {

constexpr int kMaxJsonDepth = 100;
// Put at the end of the message to continue, to find that place in the output; white space may be stripped
// there.
constexpr std::string_view kContinueMark = "CONTINUE_FINAL_MESSAGE_TAG ";

// Everything that comes this way is untrusted.
jinja::Value from_json(jinja::Interpreter& in, const ordered_json& json, int depth = 0) {
  if (depth > kMaxJsonDepth) in.fail("the input is nested more than {} deep", kMaxJsonDepth);
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX) return json.get<double>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  auto text = [&](const std::string& s) { return in.text(jinja::Text(s, false)); };
  if (json.is_string()) return text(json.get_ref<const std::string&>());
  if (json.is_array()) {
    jinja::List* out = in.new_list();
    for (const auto& item : json) in.push(*out, from_json(in, item, depth + 1));
    return out;
  }
  if (json.is_object()) {
    jinja::Dict* out = in.new_dict();
    for (const auto& [key, item] : json.items()) in.set(*out, text(key), from_json(in, item, depth + 1));
    return out;
  }
  return {};
}

// A role of the fixed set is a word of the protocol, not of a user: templates spell control tokens with it
// ("<|" + role + "|>"). Any other role stays untrusted.
jinja::Value from_messages(jinja::Interpreter& in, const ordered_json& messages) {
  constexpr std::string_view kRoles[] = {"system", "developer", "user",    "assistant",
                                         "tool",   "function",  "ipython", "model"};
  jinja::Value out = from_json(in, messages);
  for (const jinja::Value& message : out.list()->items) {
    const jinja::Value* role = message.dict() ? message.dict()->find_text("role") : nullptr;
    if (!role || !role->text()) continue;
    const std::string& word = role->text()->bytes();
    if (std::find(std::begin(kRoles), std::end(kRoles), word) == std::end(kRoles)) continue;
    message.dict()->set(in.text("role"), in.text(word));
  }
  return out;
}

void define(jinja::Interpreter& in, const ChatInputs& inputs, const ordered_json& messages) {
  in.define("messages", from_messages(in, messages));
  in.define("tools", inputs.tools ? from_json(in, *inputs.tools) : jinja::Value());
  if (inputs.documents) in.define("documents", from_json(in, *inputs.documents));
  in.define("add_generation_prompt", inputs.add_generation_prompt);
  struct Token {
    const char* name;
    const std::optional<std::string>& text;
  };
  for (const Token& t : {Token{"bos_token", inputs.bos_token}, Token{"eos_token", inputs.eos_token},
                         Token{"unk_token", inputs.unk_token}, Token{"pad_token", inputs.pad_token}}) {
    if (t.text) in.define(t.name, in.text(*t.text));
  }
  if (!inputs.arguments) return;
  for (const auto& [name, value] : inputs.arguments->items()) in.define(name, from_json(in, value));
}

// The text of the last message with the mark at its end.
ordered_json marked(const ordered_json& messages) {
  ordered_json out = messages;
  ordered_json* content = out.empty() || !out.back().is_object() || !out.back().contains("content")
                              ? nullptr
                              : &out.back()["content"];
  if (content && content->is_array()) {
    ordered_json* last = nullptr;
    for (auto& part : *content) {
      if (part.is_object() && part.contains("text")) last = &part["text"];
    }
    content = last;
  }
  if (!content || !content->is_string())
    fail(Code::kBadData, "[tokenizer] continue_final_message: the last message has no text");
  content->get_ref<std::string&>() += kContinueMark;
  return out;
}

// The text up to the mark. Where the template stripped the mark's blank, it strips the text's as well.
jinja::Text cut_at_mark(const jinja::Text& text) {
  std::string_view bare = kContinueMark.substr(0, kContinueMark.size() - 1);
  size_t at = text.bytes().rfind(bare);
  if (at == std::string::npos) {
    fail(Code::kBadData,
         "[tokenizer] continue_final_message: the template leaves the last message's text out");
  }
  if (text.bytes().compare(at, kContinueMark.size(), kContinueMark) == 0) return text.cut(0, at);
  jinja::Text before = text.cut(0, at);
  return before.cut(0, jinja::strip_range(before.bytes(), jinja::Side::kRight, nullptr).end);
}

Rendered segments(const jinja::Text& text) {
  Rendered out;
  size_t at = 0;
  auto put = [&](size_t end, bool trusted) {
    if (end > at) out.segments.push_back({text.bytes().substr(at, end - at), trusted});
    at = end;
  };
  for (const auto& range : text.untrusted()) {
    put(range.begin, true);
    put(range.end, false);
  }
  put(text.size(), true);
  return out;
}

// Of all texts in it: what a template may write beyond its own limit.
size_t text_bytes(const ordered_json& value, int depth = 0) {
  if (value.is_string()) return value.get_ref<const std::string&>().size();
  if (!value.is_structured() || depth > kMaxJsonDepth) return 0;
  size_t bytes = 0;
  for (const auto& item : value) bytes += text_bytes(item, depth + 1);
  return bytes;
}

void check_inputs(const ChatInputs& inputs) {
  if (!inputs.messages || !inputs.messages->is_array())
    fail(Code::kBadData, "[tokenizer] messages is no array");
  if (inputs.arguments && !inputs.arguments->is_object()) {
    fail(Code::kBadData, "[tokenizer] the template's arguments are no object");
  }
}

}  // namespace

std::string Rendered::text() const {
  std::string out;
  for (const Segment& s : segments) out += s.text;
  return out;
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string name) {
  return guard([&] { return ChatTemplate(jinja::parse(source, std::move(name))); });
}

std::string_view ChatTemplate::source() const { return parsed_->source; }

bool ChatTemplate::reads(const std::string& variable) const { return parsed_->reads.count(variable) > 0; }

Result<Rendered> ChatTemplate::render(const ChatInputs& inputs) const {
  return guard([&] {
    check_inputs(inputs);
    jinja::Limits limits;
    limits.output += text_bytes(*inputs.messages);
    jinja::Interpreter in(*parsed_, limits, inputs.now);
    if (!inputs.continue_final_message) {
      define(in, inputs, *inputs.messages);
      return segments(in.render());
    }
    define(in, inputs, marked(*inputs.messages));
    return segments(cut_at_mark(in.render()));
  });
}

}  // namespace juno::tokenizer
