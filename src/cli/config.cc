// SPDX-License-Identifier: Apache-2.0
#include "cli/config.h"

#include <CLI/CLI.hpp>
#include <set>

#include "cli/options.h"
#include "cli/suggest.h"
#include "server/config.h"

namespace juno::cli {
namespace {

std::string no_such_option(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& n : o->get_lnames()) known.push_back(n);
  const std::string hint = nearest(name, known);
  return fmt::format("there is no option \"{}\"{}", name,
                     hint.empty() ? "" : fmt::format("; did you mean {}?", hint));
}

void apply(CLI::Option& option, const server::Setting& setting) {
  const bool flag = option.get_expected_max() == 0;
  if (flag && setting.values != std::vector<std::string>{"true"}) {
    if (setting.values == std::vector<std::string>{"false"}) return;
    throw CLI::ValidationError(setting.name, "must be true or false");
  }
  if (setting.several && option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll)
    throw CLI::ValidationError(setting.name, "takes one value");
  for (const std::string& value : setting.values) option.add_result(value);
  if (!setting.values.empty()) option.run_callback();
}

}  // namespace

void apply_config(CLI::App& app, const std::string& path) {
  std::set<const CLI::Option*> given;
  for (const CLI::Option* o : app.get_options())
    if (o->count() > 0) given.insert(o);
  for (const server::Setting& setting : take(server::read_settings(read_text(path), path))) {
    const auto refuse = [&](const std::string& why) {
      fail(Code::kConfig, "[cli] {}:{}: {}", path, setting.line, why);
    };
    CLI::Option* option = app.get_option_no_throw("--" + setting.name);
    if (!option) refuse(no_such_option(app, setting.name));
    if (setting.name == "config" || setting.name == "help")
      refuse(fmt::format("--{} is for the command line alone", setting.name));
    bool beaten = given.contains(option);
    for (const CLI::Option* rival : option->get_excludes()) {
      beaten = beaten || given.contains(rival);
      if (!beaten && rival->count() > 0)
        refuse(fmt::format("{} and {} exclude each other", setting.name, rival->get_name()));
    }
    if (beaten) continue;
    try {
      apply(*option, setting);
    } catch (const CLI::ParseError& e) {
      refuse(e.what());
    }
  }
}

}  // namespace juno::cli
