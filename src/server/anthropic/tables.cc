// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/tables.h"

#include "server/openai/tables.h"

namespace juno::server {
namespace {

Field cache_control() {
  return optional("cache_control",
                  object({required("type", words({"ephemeral"}), "ephemeral"),
                          optional("ttl", words({"5m", "1h"}), "5m", "how long at least")}),
                  "none", "taken: every prefix is kept while there is room");
}

Fields text_block() {
  return {required("text", text(), "the text; it never becomes a control token"), cache_control(),
          no_op("citations", list({}), {Json::array()}, "none are taken")};
}

Forms texts() {
  const Fields part = {deciding(
      required("type", words({"text"}, {"image", "document", "search_result", "tool_reference"}), "text"))};
  return either(text(), list(variants(part, "type", {{"text", text_block()}}), 1));
}

Forms blocks() {
  const Fields kind = {deciding(
      required("type",
               words({"text", "tool_use", "tool_result", "thinking"},
                     {"image", "document", "search_result", "redacted_thinking", "server_tool_use",
                      "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
                      "mcp_tool_use", "mcp_tool_result", "container_upload"}),
               "text, tool_use and thinking of the assistant, text and tool_result of the user"))};
  const Fields tool_use = {required("id", text(1), "what the result names"),
                           required("name", text(1), "the tool"), required("input", map(), "the arguments"),
                           cache_control(), unsupported("caller")};
  const Fields tool_result = {
      required("tool_use_id", text(1), "the id of an earlier call"),
      optional("content", texts(), "empty", "what the tool gave"),
      optional("is_error", boolean(), "false", "the content is given to the model after 'Error: '"),
      cache_control()};
  const Fields thinking = {required("thinking", text(), "given to the template, which decides"),
                           optional("signature", text(), "none", "none is checked: nothing here is sealed")};
  return list(variants(kind, "type",
                       {{"text", text_block()},
                        {"tool_use", tool_use},
                        {"tool_result", tool_result},
                        {"thinking", thinking}}),
              1);
}

Forms tools() {
  const Fields kind = {deciding(optional(
      "type",
      words({"custom"},
            {"bash_20241022", "bash_20250124", "code_execution_20250522", "code_execution_20250825",
             "computer_20241022", "computer_20250124", "computer_20251124", "memory_20250818",
             "text_editor_20241022", "text_editor_20250124", "text_editor_20250429", "text_editor_20250728",
             "tool_search_tool_bm25_20251119", "tool_search_tool_regex_20251119", "web_fetch_20250910",
             "web_search_20250305", "mcp_toolset"}),
      "custom", "custom"))};
  const Fields custom = {
      required("name", text_of(Chars::kName, 1, 128), "what a call names"),
      required("input_schema", map(), "a JSON Schema that arguments are held to"),
      optional("description", text(), "none", "given to the template"),
      optional("strict", boolean(), "true", "both values are held to the schema"),
      cache_control(),
      no_op("eager_input_streaming", boolean(), {false}, "arguments are held to their schema"),
      no_op("defer_loading", boolean(), {false}, "every tool is given to the model"),
      unsupported("allowed_callers"),
      unsupported("input_examples"),
  };
  return list(variants(kind, "type", {{"custom", custom}}), 1, 128);
}

Forms tool_choice() {
  const Fields kind = {deciding(required("type", words({"auto", "any", "tool", "none"}), "who decides"))};
  const Field parallel =
      optional("disable_parallel_tool_use", boolean(), "false", "true: at most one call; needs tools");
  return variants(kind, "type",
                  {{"auto", {parallel}},
                   {"any", {parallel}},
                   {"tool", {required("name", text(1), "one of tools"), parallel}},
                   {"none", {}}});
}

Forms thinking() {
  const Fields kind = {deciding(required("type", words({"enabled", "disabled", "adaptive"}), "whether"))};
  return variants(kind, "type",
                  {{"enabled",
                    {required("budget_tokens", integer(1024, kMaxTokens),
                              "below max_tokens; a target: up to 4095 is the effort low, up to 16383 medium, "
                              "above high")}},
                   {"disabled", {}},
                   {"adaptive", {}}});
}

Forms output_config() {
  const Fields kind = {deciding(required("type", words({"json_schema"}), "json_schema"))};
  return object(
      {optional("effort", words({"low", "medium", "high", "xhigh"}, {"max"}), "the model's",
                "given to a template that reads it"),
       optional("format",
                variants(kind, "type",
                         {{"json_schema", {required("schema", schema_forms(), "the reply is held to it")}}}),
                "none", "a reply that ends with end_turn parses and fits")});
}

// What makes the prompt.
Fields prompt_fields() {
  return {
      required("messages",
               list(object({deciding(required("role", words({"user", "assistant"}), "whose turn")),
                            required("content", either(text(), blocks()),
                                     "texts are joined with a newline, so are turns of one role")}),
                    1, 4096),
               "rendered by the model's own template; a last one of the assistant is continued"),
      optional("system", texts(), "none", "the system message"),
      optional("tools", tools(), "none", "given to the template; calls are parsed from the reply"),
      optional("tool_choice", tool_choice(), "auto with tools, else none",
               "any and tool: the reply is a call, by grammar"),
      optional("thinking", thinking(), "the model's",
               "given to a template that knows it; disabled switches it off"),
      optional("output_config", output_config(), "none", "effort, and what the reply is held to"),
      cache_control(),
      unsupported("mcp_servers"),
      unsupported("context_management"),
  };
}

Fields reply_fields() {
  return {
      required("max_tokens", integer(1, kMaxTokens), "an upper bound; the end of the context is another"),
      optional("stop_sequences", list(text(1, 1024), 0, 16), "none",
               "the text ends right before the first match"),
      optional("stream", boolean(), "false", "typed events, ending in message_stop"),
      optional("temperature", number(0, 1), "1", "0 is greedy: the lowest id on a tie"),
      optional("metadata", object({optional("user_id", text(0, 256), "none", "logged, hashed")}), "none",
               "who asks"),
      no_op("service_tier", words({"auto", "standard_only"}), {"auto", "standard_only"}, "there is one tier"),
      unsupported("container"),
      unsupported("inference_geo"),
  };
}

}  // namespace

const Fields& message_fields() {
  static const Fields fields =
      all({model_fields(), prompt_fields(), reply_fields(),
           picked(sampling_fields(), {"top_p", "top_k", "min_p"}), picked(token_fields(), {"seed"}),
           picked(identity_fields(), {"session_id", "x_juno_session_id", "cache_salt", "x_juno_priority"})});
  return fields;
}

const Fields& count_tokens_fields() {
  static const Fields fields = joined(model_fields(), prompt_fields());
  return fields;
}

}  // namespace juno::server
