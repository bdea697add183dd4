// SPDX-License-Identifier: Apache-2.0
#include "dialect/call_form.h"

#include <algorithm>

#include "grammar/fault.h"
#include "grammar/json_schema.h"

namespace juno::dialect {
namespace {

constexpr std::string_view kAnnotations[] = {"$schema",     "$id",      "$comment",    "$defs",
                                             "definitions", "title",    "default",     "examples",
                                             "deprecated",  "readOnly", "description", "writeOnly"};

bool is_annotation(const std::string& keyword) {
  return keyword.starts_with("x-") ||
         std::find(std::begin(kAnnotations), std::end(kAnnotations), keyword) != std::end(kAnnotations);
}

[[noreturn]] void refuse(grammar::Refusal why, const std::string& keyword, std::string_view text) {
  grammar::Fault fault(why, fmt::format("[dialect] schema at '': {} {}", keyword, text));
  fault.keyword = keyword;
  throw fault;
}

// The schema with its type said: arguments are an object.
Json of_object(const Json& schema) {
  Json object = schema;
  const Json type = object.value("type", Json("object"));
  const bool may_be =
      type == "object" || (type.is_array() && std::find(type.begin(), type.end(), "object") != type.end());
  if (!may_be)
    refuse(grammar::Refusal::kInvalidSchema, "type", "leaves no object, which the arguments of a call are");
  object["type"] = "object";
  return object;
}

}  // namespace

const Tool* CallReader::find(std::string_view name) const {
  for (const Tool& tool : use.tools) {
    if (tool.name == name && (use.choice != Choice::kNamed || use.name == name)) return &tool;
  }
  return nullptr;
}

CallWriter::CallWriter(grammar::Builder& builder, const ToolUse& use) : to(builder), use_(use) {}

NodeId CallWriter::named(const std::function<NodeId(const Tool&)>& after) {
  NodeId any = to.never();
  for (const Tool& tool : use_.tools) {
    if (use_.choice == Choice::kNamed && tool.name != use_.name) continue;
    any = to.either(to.literal(tool.name, after(tool)), any);
  }
  return any;
}

NodeId CallWriter::arguments(const Tool& tool, NodeId next) { return value(tool, "", next); }

NodeId CallWriter::value(const Tool& tool, const std::string& pointer, NodeId next) {
  const auto [found, is_new] = rules_.try_emplace({tool.name, pointer}, -1);
  if (is_new) found->second = to.insert(grammar::compile_json_schema(of_object(*tool.parameters), pointer));
  return to.call(found->second, next);
}

NodeId CallWriter::properties(const Tool& tool, const Property& write, std::string_view between,
                              NodeId next) {
  const Json schema = of_object(*tool.parameters);
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword != "type" && keyword != "properties" && keyword != "required" &&
        keyword != "additionalProperties" && !is_annotation(keyword))
      refuse(grammar::Refusal::kUnsupportedSchema, keyword,
             "cannot be held to at the root, where this model writes properties one by one");
  }
  grammar::compile_json_schema(schema.dump());  // refuses what is wrong with it
  const Json properties = schema.value("properties", Json::object());
  const Json required = schema.value("required", Json::array());
  for (const Json& name : required) {
    if (!properties.contains(name.get<std::string>()))
      refuse(grammar::Refusal::kUnsupportedSchema, "required", "names what is no property");
  }
  NodeId none = next, some = next;  // what follows when no property was written yet, and when some were
  for (auto property = properties.rbegin(); property != properties.rend(); ++property) {
    const NodeId written = write(property.key(), some);
    const bool must = std::find(required.begin(), required.end(), Json(property.key())) != required.end();
    none = to.either(written, must ? to.never() : none);
    some = to.either(to.literal(between, written), must ? to.never() : some);
  }
  return none;
}

std::string pointer_of(const std::string& property) {
  return (Json::json_pointer("/properties") / property).to_string();
}

const Json* property_of(const Tool& tool, const std::string& name) {
  const auto properties = tool.parameters->find("properties");
  if (properties == tool.parameters->end() || !properties->is_object()) return nullptr;
  const auto found = properties->find(name);
  return found == properties->end() ? nullptr : &*found;
}

bool is_free_text(const Json& schema) {
  if (!schema.is_object() || schema.value("type", Json()) != "string") return false;
  return std::all_of(schema.items().begin(), schema.items().end(), [](const auto& item) {
    return item.key() == "type" || item.key() == "enum" || is_annotation(item.key());
  });
}

}  // namespace juno::dialect
