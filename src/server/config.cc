// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <toml++/toml.h>

#include <algorithm>

namespace juno::server {
namespace {

std::string scalar(const toml::node& node, const std::string& path, std::string_view name) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  fail(Code::kConfig, "[server] {}:{}: {} must be text, a number, true or false, or a list of those", path,
       node.source().begin.line, name);
}

std::vector<std::string> values(const toml::node& node, const std::string& path, const std::string& name) {
  std::vector<std::string> all;
  if (const auto* list = node.as_array()) {
    for (const toml::node& value : *list) all.push_back(scalar(value, path, name));
  } else if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table)
      all.push_back(fmt::format("{}={}", std::string_view(key), scalar(value, path, name)));
  } else {
    all.push_back(scalar(node, path, name));
  }
  return all;
}

}  // namespace

Result<std::vector<Setting>> read_settings(std::string_view text, const std::string& path) {
  return guard([&] {
    try {
      std::vector<Setting> settings;
      for (const auto& [key, node] : toml::parse(text, path)) {
        const std::string name(std::string_view{key});
        settings.push_back(
            {name, values(node, path, name), node.is_array() || node.is_table(), node.source().begin.line});
      }
      std::ranges::sort(settings, {}, &Setting::line);
      return settings;
    } catch (const toml::parse_error& e) {
      fail(Code::kConfig, "[server] {}:{}:{}: {}", path, e.source().begin.line, e.source().begin.column,
           e.description());
    }
  });
}

}  // namespace juno::server
