// SPDX-License-Identifier: Apache-2.0
// The fields of /v1/responses.
#include "server/openai/tables.h"

namespace juno::server {
namespace {

Field state() {
  return optional("status", words({"in_progress", "completed", "incomplete"}), "none", "of an earlier reply");
}

Forms parts() {
  const Fields kind = {deciding(required(
      "type", words({"input_text", "output_text", "refusal"}, {"input_image", "input_file", "input_audio"}),
      "what it is"))};
  const Fields output = {required("text", text(), "the text"),
                         no_op("annotations", list({}), {Json::array()}, "none are taken"),
                         optional("logprobs", list({}), "none", "of an earlier reply; not looked at")};
  return list(variants(kind, "type",
                       {{"input_text", {required("text", text(), "the text")}},
                        {"output_text", output},
                        {"refusal", {required("refusal", text(), "stands for the text")}}}),
              1);
}

Forms texts_of(const char* kind, const char* about) {
  const Fields type = {deciding(required("type", words({kind}), kind))};
  return list(variants(type, "type", {{kind, {required("text", text(), about)}}}));
}

Forms items() {
  const Fields kind = {deciding(optional(
      "type",
      words({"message", "function_call", "function_call_output", "reasoning"}, {"item_reference",
                                                                                "file_search_call",
                                                                                "computer_call",
                                                                                "computer_call_output",
                                                                                "web_search_call",
                                                                                "image_generation_call",
                                                                                "code_interpreter_call",
                                                                                "local_shell_call",
                                                                                "local_shell_call_output",
                                                                                "shell_call",
                                                                                "shell_call_output",
                                                                                "apply_patch_call",
                                                                                "apply_patch_call_output",
                                                                                "mcp_list_tools",
                                                                                "mcp_approval_request",
                                                                                "mcp_approval_response",
                                                                                "mcp_call",
                                                                                "compaction",
                                                                                "custom_tool_call",
                                                                                "custom_tool_call_output"}),
      "message", "what it is"))};
  const Field id = optional("id", text(), "none", "of an earlier reply");
  const Fields message = {required("role", words({"user", "assistant", "system", "developer"}), "who speaks"),
                          required("content", either(text(), parts()), "parts are joined with a newline"), id,
                          state(), unsupported("phase")};
  const Fields call = {required("call_id", text(1), "what its output names"),
                       required("name", text(1), "the tool"),
                       required("arguments", text(), "any text; JSON is usual"),
                       id,
                       state(),
                       unsupported("namespace"),
                       unsupported("caller")};
  const Fields output = {required("call_id", text(1), "that of an earlier call"),
                         required("output", either(text(), parts()), "what the tool gave"), id, state()};
  const Fields reasoning = {
      required("summary", texts_of("summary_text", "stands for content where there is none"), "may be empty"),
      optional("content", texts_of("reasoning_text", "given to the template, which decides"), "none",
               "what was thought"),
      id, state(), unsupported("encrypted_content")};
  return list(variants(kind, "type",
                       {{"message", message},
                        {"function_call", call},
                        {"function_call_output", output},
                        {"reasoning", reasoning}}),
              1, 4096);
}

Forms tools() {
  const Fields kind = {deciding(required("type", words({"function"}, other_tool_kinds()), "function"))};
  return list(variants(kind, "type", {{"function", tool_function_fields()}}), 1, 128);
}

Forms tool_choice() {
  const Fields kind = {
      deciding(required("type",
                        words({"function"}, {"allowed_tools", "custom", "file_search", "web_search_preview",
                                             "computer_use_preview", "code_interpreter", "image_generation",
                                             "mcp", "shell", "apply_patch"}),
                        "function"))};
  return either(words({"none", "auto", "required"}),
                variants(kind, "type", {{"function", {required("name", text(1), "one of tools")}}}));
}

Forms text_settings() {
  const Fields kind = {
      deciding(required("type", words({"text", "json_object", "json_schema"}), "what the reply is"))};
  const Fields schema = {required("name", text_of(Chars::kName, 1, 64), "given to the template"),
                         required("schema", schema_forms(), "compiled before anything runs"),
                         optional("strict", boolean(), "true", "both values are held to the schema"),
                         optional("description", text(), "none", "given to the template with the schema")};
  return object(
      {optional("format",
                variants(kind, "type", {{"text", {}}, {"json_object", {}}, {"json_schema", schema}}), "text",
                "a reply that is completed parses and fits"),
       no_op("verbosity", words({"medium"}, {"low", "high"}), {"medium"}, "models have no such setting")});
}

Forms metadata() {
  Forms value = text(0, 512);
  value[0].characters = true;
  Forms forms = map(value);
  forms[0].most = 16, forms[0].longest_key = 64;
  return forms;
}

Fields honoured() {
  return {
      required("input", either(text(), items()), "becomes the conversation"),
      optional("instructions", text(), "none", "a system message placed first, for this reply only"),
      optional("previous_response_id", text(), "none",
               "continues that conversation; with --store-responses, while it is in memory"),
      optional("store", boolean(), "true with --store-responses, else false", "true only with that option"),
      optional("max_output_tokens", integer(1, kMaxTokens), "what the context leaves",
               "an upper bound, after which the status is incomplete"),
      optional("tools", tools(), "none", "given to the template; calls are parsed from the reply"),
      optional("tool_choice", tool_choice(), "auto with tools, else none",
               "required and named: the reply is a call, by grammar"),
      optional("parallel_tool_calls", boolean(), "true", "false: at most one call; needs tools"),
      optional("text", text_settings(), "text", "what the reply is held to"),
      optional("reasoning",
               object({optional("effort", words({"none", "minimal", "low", "medium", "high", "xhigh"}),
                                "the model's", "given to a template that reads it"),
                       unsupported("summary"), unsupported("generate_summary")}),
               "the model's", "none switches thinking off"),
      optional(
          "include",
          list(words({"message.output_text.logprobs"},
                     {"file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
                      "message.input_image.image_url", "computer_call_output.output.image_url",
                      "code_interpreter_call.outputs", "reasoning.encrypted_content"})),
          "[]", "message.output_text.logprobs adds these"),
      optional("top_logprobs", integer(0, 20), "0",
               "that many, most probable first; needs include to name message.output_text.logprobs"),
      optional("stream", boolean(), "false", "typed events with sequence_number"),
      optional("stream_options",
               object({no_op("include_obfuscation", boolean(), {false}, "nothing is padded")}), "none",
               "only with stream"),
      optional("metadata", metadata(), "{}", "returned with the response"),
  };
}

Fields refused() {
  Field context = no_op("context_management", list({}), {Json::array()}, "nothing is cut");
  context.code = "unsupported_parameter";
  return {
      no_op("truncation", words({"disabled"}, {"auto"}), {"disabled"}, "too long is an error"),
      no_op("background", boolean(), {false}, "a reply comes while its client waits"),
      context,
      unsupported("conversation", "use previous_response_id"),
      unsupported("max_tool_calls", "there are no built-in tools"),
      unsupported("prompt", "there are no stored prompts"),
      unsupported("moderation"),
      unsupported("prompt_cache_options"),
  };
}

}  // namespace

const Fields& response_fields() {
  static const Fields fields =
      all({model_fields(), honoured(), sampling_fields(), identity_fields(), refused()});
  return fields;
}

}  // namespace juno::server
