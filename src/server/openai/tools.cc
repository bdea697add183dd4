// SPDX-License-Identifier: Apache-2.0
// Tools, and what else the model's dialect has to do with a request.
#include <fmt/format.h>

#include <set>

#include "server/openai/constraints.h"
#include "server/openai/request.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace juno::server {
namespace {

using dialect::Choice;

const Json& no_arguments() {
  static const Json schema = {
      {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  return schema;
}

void set_choice(dialect::ToolUse& use, const Json* choice) {
  if (!choice) return;
  if (choice->is_object()) {
    use.choice = Choice::kNamed;
    use.name = (*choice)["function"]["name"];
    return;
  }
  use.choice = *choice == "none" ? Choice::kNone : *choice == "required" ? Choice::kRequired : Choice::kAuto;
}

// "" where it is not as its table says.
std::string name_in(const Json& holder) {
  if (!holder.is_object() || !holder.contains("function") || !holder["function"].is_object()) return "";
  const Json& function = holder["function"];
  return function.contains("name") && function["name"].is_string() ? function["name"].get<std::string>() : "";
}

// Control tokens whose text belongs to the reply.
std::vector<int32_t> ids_of(const std::vector<std::string>& markers, const tokenizer::Tokenizer& tokenizer) {
  std::vector<int32_t> out;
  for (const std::string& marker : markers) {
    const auto ids = tokenizer.encode(marker, {.parse_special = true});
    if (ids.size() == 1 && tokenizer.is_control(ids[0])) out.push_back(ids[0]);
  }
  return out;
}

}  // namespace

void check_tools(const Values& values, Check& check) {
  const auto contradiction = [&](const std::string& param, std::string_view why) {
    check.fault(Step::kContradictions, "invalid_value", param, fmt::format("'{}' {}", param, why));
  };
  const Json* tools = values.find("tools");
  std::set<std::string> names;
  for (size_t i = 0; tools && tools->is_array() && i < tools->size(); ++i) {
    const std::string name = name_in((*tools)[i]);
    if (!name.empty() && !names.insert(name).second)
      contradiction(fmt::format("tools[{}].function.name", i),
                    fmt::format("is '{}', like that of another tool", name));
  }
  const Json* choice = values.find("tool_choice");
  if (!tools && choice && *choice != "none") contradiction("tool_choice", "needs tools");
  if (!tools && values.has("parallel_tool_calls")) contradiction("parallel_tool_calls", "needs tools");
  if (!tools || !choice || !choice->is_object()) return;
  const std::string name = name_in(*choice);
  if (!name.empty() && !names.count(name))
    contradiction("tool_choice.function.name", fmt::format("is '{}', which is none of tools", name));
}

std::shared_ptr<dialect::ToolUse> read_tools(const Json* list, const Json* choice, bool parallel,
                                             const std::string& param, std::string_view schema) {
  if (!list) return nullptr;
  auto use = std::make_shared<dialect::ToolUse>();
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& function = (*list)[i]["function"];
    const auto parameters = function.find("parameters");
    const bool given = parameters != function.end() && !parameters->is_null();
    if (given) compile_schema(*parameters, fmt::format("{}[{}].{}", param, i, schema));
    use->tools.push_back({function["name"], given ? &*parameters : &no_arguments()});
  }
  set_choice(*use, choice);
  use->parallel = parallel;
  return use;
}

void set_prompt(Plan& plan, const Conversation& conversation, std::unique_ptr<grammar::Automaton> held,
                const std::string& tools_param) {
  api::Work& work = plan.works[0];
  const tokenizer::ChatTemplate* chat_template = plan.service->chat_template();
  plan.dialect = dialect::find_dialect(chat_template ? chat_template->source() : "");
  if (plan.use && chat_template && !plan.dialect->has_tools()) {
    throw bad("unsupported_parameter", tools_param,
              fmt::format("'{}' is not supported: the model's template knows no tools", tools_param));
  }
  Rendering rendering = render(*plan.service, conversation);
  plan.prompt = std::move(rendering.text);
  work.prompt = std::move(rendering.ids);

  const bool calls = plan.use && plan.use->choice != Choice::kNone;
  if (!calls) plan.use = nullptr;  // what looks like a call is text
  const bool must = calls && plan.use->choice != Choice::kAuto;
  std::unique_ptr<grammar::Automaton> automaton;
  if (held && !must) {
    automaton = std::make_unique<grammar::Automaton>(
        compiled("response_format", [&] { return take(plan.dialect->around(plan.prompt, *held)); }));
  }
  if (calls) {
    dialect::ToolUse use = *plan.use;
    if (automaton) use.choice = Choice::kRequired;  // a call, or what the reply is held to
    grammar::Automaton call =
        compiled(tools_param, [&] { return take(plan.dialect->grammar(plan.prompt, use)); });
    if (automaton) call = either(call, *automaton);
    automaton = std::make_unique<grammar::Automaton>(std::move(call));
  }
  if (automaton) work.grammar = std::move(automaton);
  if (calls || plan.dialect->has_reasoning())
    work.keep_control = ids_of(plan.dialect->markers(), plan.service->tokenizer());
}

}  // namespace juno::server
