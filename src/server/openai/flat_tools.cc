// SPDX-License-Identifier: Apache-2.0
#include "server/openai/flat_tools.h"

#include <fmt/format.h>

#include <set>

namespace juno::server {
namespace {

std::string word_at(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

}  // namespace

Json chat_tools(const Json& flat, const char* schema) {
  Json out = Json::array();
  for (const Json& tool : flat) {
    Json function;
    for (const auto& [name, as] :
         {std::pair{"name", "name"}, {"description", "description"}, {schema, "parameters"}}) {
      const auto at = tool.find(name);
      if (at != tool.end() && !at->is_null()) function[as] = *at;
    }
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

void check_flat_tools(const Values& values, std::string_view named, Check& check) {
  const auto contradiction = [&](const std::string& param, std::string_view why) {
    check.fault(Step::kContradictions, "invalid_value", param, fmt::format("'{}' {}", param, why));
  };
  const Json* tools = values.find("tools");
  std::set<std::string> names;
  for (size_t i = 0; tools && tools->is_array() && i < tools->size(); ++i) {
    const std::string name = (*tools)[i].is_object() ? word_at((*tools)[i], "name") : "";
    if (!name.empty() && !names.insert(name).second)
      contradiction(fmt::format("tools[{}].name", i),
                    fmt::format("is '{}', like that of another tool", name));
  }
  const Json* choice = values.find("tool_choice");
  if (!choice) return;
  const std::string kind = choice->is_object() ? word_at(*choice, "type") : "";
  if (!tools && *choice != "none" && kind != "none") contradiction("tool_choice", "needs tools");
  if (!tools || kind != named) return;
  const std::string name = word_at(*choice, "name");
  if (!name.empty() && !names.count(name))
    contradiction("tool_choice.name", fmt::format("is '{}', which is none of tools", name));
}

}  // namespace juno::server
