// SPDX-License-Identifier: Apache-2.0
#include "server/openai/tables.h"

namespace juno::server {
namespace {

Fields one_call() {
  return {
      required("id", text(1), "what the tool's message names"),
      required("type", words({"function"}, {"custom"}), "function"),
      required("function",
               object({required("name", text(1), "the tool"),
                       required("arguments", text(), "any text; JSON is usual")}),
               "what was called"),
  };
}

Forms content() {
  const Fields part = {
      deciding(required("type", words({"text"}, {"image_url", "input_audio", "file"}), "text"))};
  const Forms text_part = variants(part, "type", {{"text", {required("text", text(), "the text")}}});
  return either(text(), list(text_part, 1));
}

Fields message() {
  Field annotations = no_op("annotations", list({}), {Json::array()}, "none are taken");
  annotations.code = "unsupported_parameter";
  return {
      deciding(required("role", words({"system", "developer", "user", "assistant", "tool"}, {"function"}),
                        "developer is system for templates without it")),
      optional("content", content(), "required, except for an assistant with tool_calls",
               "parts are joined with a newline; text never becomes a control token"),
      optional("name", text_of(Chars::kName, 1, 64), "none", "given to a template that reads it"),
      optional("tool_calls", list(object(one_call())), "none", "of an assistant"),
      optional("tool_call_id", text(1), "required of a tool", "the id of an earlier call"),
      optional("reasoning_content", text(), "none", "of an assistant; the template decides (extension)"),
      optional("refusal", text(), "none", "of an assistant; stands for content where that is null"),
      annotations,
      unsupported("audio"),
      unsupported("function_call", "use tool_calls"),
  };
}

Forms response_format() {
  const Fields schema = {
      required("name", text_of(Chars::kName, 1, 64), "given to the template"),
      required("schema", schema_forms(), "compiled before anything runs"),
      optional("strict", boolean(), "true", "both values are held to the schema"),
      optional("description", text(), "none", "given to the template with the schema"),
  };
  return variants(
      {deciding(required("type", words({"text", "json_object", "json_schema"}), "what the reply is"))},
      "type",
      {{"text", {}},
       {"json_object", {}},
       {"json_schema", {required("json_schema", object(schema), "the schema")}}});
}

Forms tools() {
  const Fields kind = {deciding(required("type", words({"function"}, other_tool_kinds()), "function"))};
  return list(variants(kind, "type",
                       {{"function", {required("function", object(tool_function_fields()), "the tool")}}}),
              1, 128);
}

Forms tool_choice() {
  const Fields kind = {
      deciding(required("type", words({"function"}, {"allowed_tools", "custom"}), "function"))};
  const Fields named = {
      required("function", object({required("name", text(1), "one of tools")}), "the tool")};
  return either(words({"none", "auto", "required"}), variants(kind, "type", {{"function", named}}));
}

Fields chat_own() {
  Field max_tokens = alias("max_tokens", "max_completion_tokens", integer(1, kMaxTokens),
                           "older name of max_completion_tokens; both may be given if they are equal");
  max_tokens.may_repeat = true;
  return {
      required("messages", list(object(message()), 1, 4096), "rendered by the model's own template"),
      optional("max_completion_tokens", integer(1, kMaxTokens), "what the context leaves", "an upper bound"),
      max_tokens,
      optional("logprobs", boolean(), "false", "natural logarithms, before temperature"),
      optional("top_logprobs", integer(0, 20), "0", "that many, most probable first; needs logprobs"),
      optional("response_format", response_format(), "text", "a reply that ends with stop parses and fits"),
      optional("tools", tools(), "none", "given to the template; calls are parsed from the reply"),
      optional("tool_choice", tool_choice(), "auto with tools, else none",
               "required and named: the reply is a call, by grammar"),
      optional("parallel_tool_calls", boolean(), "true", "false: at most one call; needs tools"),
      optional("reasoning_effort", words({"none", "minimal", "low", "medium", "high", "xhigh"}),
               "the model's", "given to a template that reads it; none switches thinking off"),
      optional("chat_template_kwargs", map(), "{}", "extra variables that the template reads (extension)"),
      optional("continue_final_message", boolean(), "false",
               "continues the assistant's last message instead of opening a turn (extension)"),
  };
}

Fields chat_refused() {
  Field metadata = no_op("metadata", map(), {Json::object()}, "nothing is stored");
  metadata.code = "unsupported_parameter";
  return {
      no_op("verbosity", words({"medium"}, {"low", "high"}), {"medium"}, "models have no such setting"),
      no_op("modalities", list(words({"text"}, {"audio"})), {Json::array({"text"})}, "text alone"),
      no_op("store", boolean(), {false}, "nothing is stored"),
      metadata,
      unsupported("audio"),
      unsupported("prediction"),
      unsupported("web_search_options"),
      unsupported("moderation"),
      unsupported("prompt_cache_options"),
      unsupported("functions", "use tools and tool_choice"),
      unsupported("function_call", "use tools and tool_choice"),
      unsupported("chat_template", "a template is never taken from a request"),
  };
}

Forms prompts() {
  const Forms ids = list(integer(INT64_MIN, INT64_MAX), 1);
  return either(either(text(), list(text(), 1, 128)), either(ids, list(ids, 1, 128)));
}

Fields completion_own() {
  return {
      required("prompt", prompts(), "texts or token ids; choices come in prompt order, then n"),
      optional("parse_special", boolean(), "true", "texts of control tokens become these (extension)"),
      optional("max_tokens", integer(0, kMaxTokens), "16", "0 only with echo"),
      optional("echo", boolean(), "false", "the prompt comes first, with logprobs if asked"),
      optional("logprobs", integer(0, 5), "off", "0 gives the chosen token's alone"),
      optional("suffix", text(), "none", "fills in the middle"),
      optional("best_of", integer(1, 16), "n", "no other value than n"),
  };
}

Fields of_chat() {
  Fields out;
  for (const char* name : {"messages", "tools", "tool_choice", "response_format", "top_logprobs",
                           "max_completion_tokens", "modalities", "reasoning_effort"})
    out.push_back(elsewhere(name, "POST /v1/chat/completions takes it"));
  return out;
}

}  // namespace

const Fields& chat_fields() {
  static const Fields fields = all({model_fields(), chat_own(), sampling_fields(), token_fields(),
                                    identity_fields(), chat_refused(), adapter_fields()});
  return fields;
}

const Fields& completion_fields() {
  static const Fields fields = all({model_fields(), completion_own(), sampling_fields(), token_fields(),
                                    identity_fields(), of_chat(), adapter_fields()});
  return fields;
}

const Fields& embedding_fields() {
  static const Forms ids = list(integer(INT64_MIN, INT64_MAX), 1);
  static const Fields fields = all(
      {model_fields(),
       {required("input", either(either(text(1), list(text(1), 1, 2048)), either(ids, list(ids, 1, 2048))),
                 "texts or token ids, each within the context"),
        optional("encoding_format", words({"float", "base64"}), "float",
                 "base64 of little-endian 32-bit floats, equal to the floats bit for bit"),
        optional("dimensions", integer(1, kMaxTokens), "the model's", "cut and normalised again"),
        optional("x_juno_pooling", words({"mean", "cls", "last"}), "the model's",
                 "how tokens become one (extension)"),
        optional("user", text(0, 256), "none", "written to the access log, hashed")}});
  return fields;
}

const Fields& tokenize_fields() {
  static const Fields fields = {
      optional("model", text(1), "the only model", "a name from GET /v1/models"),
      required("content", text(), "the text"),
      optional("add_special", boolean(), "false", "the begin token in front, where the model wants one"),
      optional("parse_special", boolean(), "true", "texts of control tokens become these"),
      optional("with_pieces", boolean(), "false", "tokens as {id, piece}; a piece that is no text as bytes"),
  };
  return fields;
}

const Fields& detokenize_fields() {
  static const Fields fields = {
      optional("model", text(1), "the only model", "a name from GET /v1/models"),
      required("tokens", list(integer(INT64_MIN, INT64_MAX)), "ids inside the vocabulary"),
  };
  return fields;
}

const Fields& apply_template_fields() {
  static const Fields fields = [] {
    Fields out = {optional("model", text(1), "the only model", "a name from GET /v1/models"),
                  optional("add_generation_prompt", boolean(), "true", "opens the assistant's turn")};
    for (const Field& field : chat_own()) {
      for (const char* name :
           {"messages", "tools", "reasoning_effort", "chat_template_kwargs", "continue_final_message"})
        if (field.name == name) out.push_back(field);
    }
    return out;
  }();
  return fields;
}

}  // namespace juno::server
