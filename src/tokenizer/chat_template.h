// SPDX-License-Identifier: Apache-2.0
// Chat templates: a conversation becomes a prompt by the model's own Jinja, run in an interpreter of ours
// that sees nothing but its inputs and stops at limits (10^6 steps, 1 MiB of output beside the messages' own
// text, 100 calls deep, 1 s).
#pragma once
#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tokenizer/segment.h"

namespace juno::tokenizer {

namespace jinja {
struct Template;
}

struct Rendered {
  std::vector<Segment> segments;  // neighbours differ in trust; none is empty
  std::string text() const;
};

// What a template is given. Null pointers are left undefined, but for tools, which is none.
struct ChatInputs {
  const nlohmann::ordered_json* messages = nullptr;   // an array of objects; required
  const nlohmann::ordered_json* tools = nullptr;      // an array of objects
  const nlohmann::ordered_json* documents = nullptr;  // an array of objects
  const nlohmann::ordered_json* arguments = nullptr;  // an object: further variables, by name
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the prompt ends where the last message's text ends
  std::optional<std::string> bos_token, eos_token, unk_token, pad_token;
  std::optional<std::tm> now;  // what strftime_now() prints; without it the local time
};

class ChatTemplate {
 public:
  // name: how errors call the template ("tokenizer.chat_template" or a file). What the interpreter does not
  // know is an error with line and column here.
  static Result<ChatTemplate> parse(std::string_view source, std::string name);

  // The error of raise_exception() is the template's own sentence; any other names the template, line and
  // column.
  Result<Rendered> render(const ChatInputs& inputs) const;

  std::string_view source() const;
  bool reads(const std::string& variable) const;  // whether it asks anywhere for a variable of this name

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Template> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const jinja::Template> parsed_;
};

// Templates for files that have none: source and names (chatml, llama3, …).
struct BuiltinTemplate {
  std::string_view name, source;
};
const std::vector<BuiltinTemplate>& builtin_templates();
// Null where there is none of the name.
const BuiltinTemplate* find_builtin(std::string_view name);
// "chatml, llama3, …"
std::string builtin_names();

}  // namespace juno::tokenizer
