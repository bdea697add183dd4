// SPDX-License-Identifier: Apache-2.0
#include "api/inspect.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/format.h"
#include "cli/options.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  std::string file;
  size_t longest = 8;
  bool json = false;
};

// One line a value; a long text is cut, and says so.
std::string line_of(const Json& value) {
  constexpr size_t kWidth = 100;
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const size_t size = text.size();
  if (size > kWidth) {
    size_t end = kWidth;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      --end;  // not inside a character
    text.resize(end);
  }
  text = printable(text);
  return size > kWidth ? fmt::format("{}… ({} bytes)", text, size) : text;
}

std::string metadata_text(const Json& metadata) {
  std::string out = "\nmetadata\n";
  for (const auto& [key, value] : metadata.items())
    out += fmt::format("  {:<42} {}\n", printable(key), line_of(value));
  return out;
}

std::string tensors_text(const Json& report) {
  std::string out = "\ntensors\n";
  for (const Json& t : report["tensors"]) {
    std::string shape;
    for (const Json& d : t["shape"]) shape += (shape.empty() ? "" : " × ") + d.dump();
    out += fmt::format("  {:<34} {:<8} {:>22} {:>10}\n", printable(t["name"].get<std::string>()),
                       t["type"].get<std::string>(), shape, human_bytes(t["bytes"]));
  }
  out += "\ntypes\n";
  for (const Json& t : report["types"])
    out += fmt::format("  {:<8} {:>5} tensors {:>9} parameters {:>10}\n", t["type"].get<std::string>(),
                       t["tensors"].get<uint64_t>(), human_count(t["parameters"]), human_bytes(t["bytes"]));
  return out;
}

std::string memory_text(const Json& memory) {
  if (memory.contains("unknown"))
    return fmt::format("\nmemory: unknown, {}\n", memory["unknown"].get<std::string>());
  std::string out = fmt::format("\nmemory (weights {}, {} of keys and values a token)\n",
                                human_bytes(memory["weights"]), human_bytes(memory["kv_bytes_per_token"]));
  for (const Json& c : memory["contexts"])
    out += fmt::format("  context {:>8}: keys and values {:>9}, together {:>9}\n",
                       c["context"].get<uint64_t>(), human_bytes(c["kv"]), human_bytes(c["total"]));
  return out;
}

int inspect(const InspectOptions& options) {
  const Json report = take(api::inspect(options.file, options.longest, stderr_log(false)));
  if (options.json) {
    print(report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    return 0;
  }
  print(fmt::format("{}\nGGUF v{}, {} part{}, {}, {} parameters in {} tensors\n",
                    printable(report["file"].get<std::string>()), report["version"].get<int>(),
                    report["parts"].get<int>(), report["parts"] == 1 ? "" : "s", human_bytes(report["bytes"]),
                    human_count(report["parameters"]), report["tensors"].size()));
  print(memory_text(report["memory"]));
  print(metadata_text(report["metadata"]));
  print(tensors_text(report));
  return 0;
}

}  // namespace

Run add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  app.add_option("file", options->file, "GGUF file (the first part of a split model)")->required();
  app.add_option("--longest", options->longest, "Show arrays up to this many items whole")
      ->transform(in_range(int64_t{0}, int64_t{1} << 40));
  app.add_flag("--json", options->json, "Print JSON");
  return [options] { return inspect(*options); };
}

}  // namespace juno::cli
