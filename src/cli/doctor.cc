// SPDX-License-Identifier: Apache-2.0
#include "api/doctor.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/format.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;

int doctor(bool as_json) {
  const Json report = api::doctor();
  if (as_json) {
    print(report.dump(1) + "\n");
    return 0;
  }
  const auto text = [](const Json& value) { return value.get<std::string>(); };
  std::string out = fmt::format("{}\ncompiler          {}\n", text(report["versions"]["juno"]),
                                text(report["versions"]["compiler"]));
  out += fmt::format("cpu               {}\n", printable(text(report["cpu"]["model"])));
  out += fmt::format("threads           {}\n", text(report["cpu"]["why"]));
  out += "instruction sets ";
  for (const Json& isa : report["instruction_sets"])
    out += fmt::format(" {}{}", text(isa["name"]), isa["usable"] ? "" : " (this CPU lacks it)");
  const Json& memory = report["memory"];
  out += fmt::format("\nmemory            {} of {} free", human_bytes(memory["available"]),
                     human_bytes(memory["total"]));
  if (!memory["limit"].is_null())
    out += fmt::format(", limited to {} by the control group", human_bytes(memory["limit"]));
  out += "\n";
  for (const Json& gpu : report["gpus"])
    out += fmt::format("gpu               {}: {}\n", text(gpu["vendor"]), text(gpu["why"]));
  print(out);
  return 0;
}

}  // namespace

Run add_doctor(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print JSON");
  return [json] { return doctor(*json); };
}

}  // namespace juno::cli
