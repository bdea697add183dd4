// SPDX-License-Identifier: Apache-2.0
// Fields that several routes have.
#include <algorithm>

#include "server/openai/tables.h"

namespace juno::server {

Fields all(std::initializer_list<Fields> groups) {
  Fields out;
  for (const Fields& group : groups) out = joined(std::move(out), group);
  return out;
}

Fields picked(const Fields& fields, std::initializer_list<std::string_view> names) {
  Fields out;
  for (const Field& field : fields)
    if (std::ranges::find(names, field.name) != names.end()) out.push_back(field);
  return out;
}

const Fields& model_fields() {
  static const Fields fields = {
      required("model", text(1), "a name from GET /v1/models"),
  };
  return fields;
}

const Fields& identity_fields() {
  static const Fields fields = {
      optional("session_id", text_of(Chars::kSession, 1, 128), "none",
               "the state is kept for the next turn, bound to the key that made it (extension)"),
      alias("x_juno_session_id", "session_id", text_of(Chars::kSession, 1, 128), "the same as session_id"),
      optional("cache_salt", text(1, 256), "the key's own",
               "prefixes are shared only under an equal salt (extension)"),
      optional("x_juno_priority", words({"HIGH", "NORMAL", "LOW"}), "NORMAL", "orders the queue (extension)"),
      optional("user", text(0, 256), "none", "written to the access log, hashed"),
      optional("safety_identifier", text(0, 256), "none", "written to the access log, hashed"),
      optional("prompt_cache_key", text(0, 256), "none", "equal keys go to the same replica"),
      no_op("prompt_cache_retention", words({"in_memory", "in-memory"}, {"24h"}), {"in_memory", "in-memory"},
            "prefixes are kept in memory"),
      no_op("service_tier", words({"auto", "default"}, {"flex", "scale", "priority"}), {"auto", "default"},
            "there is one tier"),
  };
  return fields;
}

const Fields& sampling_fields() {
  static const Fields fields = {
      optional("temperature", number(0, 2), "1", "0 is greedy: the lowest id on a tie"),
      optional("top_p", number(0, 1), "1", "the smallest set of tokens whose sum reaches it; 0 keeps one"),
      optional("top_k", integer(0, kMaxTokens), "0 (off)",
               "that many of the most probable tokens (extension)"),
      alias("x_juno_top_k", "top_k", integer(0, kMaxTokens), "the same as top_k"),
      optional("min_p", number(0, 1), "0 (off)", "relative to the most probable token (extension)"),
  };
  return fields;
}

Forms schema_forms() { return either(map(), boolean()); }

Forms stream_options_forms() {
  return object({
      optional("include_usage", boolean(), "false", "one last chunk with no choices and the usage"),
      no_op("include_obfuscation", boolean(), {false}, "nothing is padded"),
      optional("include_progress", boolean(), "false",
               "chunks with no choices and x_juno_progress {processed, total} while the prompt is read "
               "(extension)"),
  });
}

const Fields& token_fields() {
  static const Fields fields = {
      optional("repetition_penalty", number_above(0, 10), "1 (off)",
               "over prompt and reply: divides positive, multiplies negative logits (extension)"),
      optional("presence_penalty", number(-2, 2), "0", "subtracted once from each token of the reply so far"),
      optional("frequency_penalty", number(-2, 2), "0",
               "subtracted as often as the token is in the reply so far"),
      optional("logit_bias", map(number(-100, 100)), "{}",
               "keys are token ids; added to the logits before all else, -100 bans"),
      optional("seed", integer(INT64_MIN, INT64_MAX), "random", "same seed, same request, same text"),
      optional("n", integer(1, 16), "1", "that many choices; the prompt is computed once"),
      optional("min_tokens", integer(0, kMaxTokens), "0", "end tokens are banned until then (extension)"),
      optional("ignore_eos", boolean(), "false", "end tokens are banned; needs a maximum (extension)"),
      optional("stop", either(text(1, 1024), list(text(1, 1024), 0, 4)), "none",
               "the text ends right before the first match"),
      optional("stream", boolean(), "false", "server-sent events, ending in [DONE]"),
      optional("stream_options", stream_options_forms(), "none", "only with stream"),
      optional("grammar", text(), "none", "GBNF of at most 64 KiB that the reply is held to (extension)"),
      alias("x_juno_grammar", "grammar", text(), "the same as grammar"),
      optional("json_schema", schema_forms(), "none", "a JSON Schema that the reply is held to (extension)"),
  };
  return fields;
}

const Fields& adapter_fields() {
  static const Fields fields = {
      unsupported("lora", "give the adapter's name as model"),
      unsupported("x_juno_loras", "give the adapter's name as model"),
      unsupported("adapter", "give the adapter's name as model"),
  };
  return fields;
}

Fields tool_function_fields() {
  return {
      required("name", text_of(Chars::kName, 1, 64), "what a call names"),
      optional("description", text(), "none", "given to the template"),
      optional("parameters", map(), "an object without properties",
               "a JSON Schema that arguments are held to"),
      optional("strict", boolean(), "true", "both values are held to the schema"),
  };
}

std::vector<std::string> other_tool_kinds() {
  return {"custom",           "web_search", "web_search_preview",
          "file_search",      "computer",   "computer_use_preview",
          "code_interpreter", "mcp",        "image_generation",
          "local_shell",      "shell",      "apply_patch"};
}

}  // namespace juno::server
