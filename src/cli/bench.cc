// SPDX-License-Identifier: Apache-2.0
#include "api/bench.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/bench_svg.h"
#include "cli/bench_text.h"
#include "cli/options.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostTokens = int64_t{1} << 30;

struct BenchOptions {
  ModelOptions model;
  std::vector<std::string> paths;
  api::BenchOptions bench;
  std::string prompts = "512", decodes = "128", depths = "0,4096", batches = "1,8,32";
  std::string report, against, svg;
  bool json = false, csv = false, md = false;
};

std::vector<int64_t> within(const std::string& list, const char* what, int64_t least, int64_t most) {
  const std::vector<int64_t> numbers = parse_numbers(list, what);
  for (int64_t n : numbers)
    if (n < least || n > most) fail(Code::kUsage, "[cli] {}: {} is not in {} to {}", what, n, least, most);
  return numbers;
}

std::vector<api::SessionOptions> models_of(const BenchOptions& o) {
  std::vector<api::SessionOptions> models;
  for (const std::string& path : o.paths) {
    models.push_back(o.model.opened(Log{}));
    models.back().model_path = path;
    models.back().model_bytes = {};
  }
  if (models.empty()) models.push_back(o.model.opened(Log{}));
  return models;
}

// Only a report that was read can lack something.
template <class Body>
std::string reading(const BenchOptions& o, Body&& body) {
  try {
    return body();
  } catch (const Json::exception& e) {
    fail(Code::kBadData, "[cli] {} is not a whole report of juno bench: {}", o.report, e.what());
  }
}

std::string written(const Json& report, const BenchOptions& o) {
  return reading(o, [&] {
    return o.json  ? report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
           : o.csv ? bench_csv(report)
                   : bench_markdown(report);
  });
}

void draw(const Json& report, const BenchOptions& o) {
  const std::string svg = reading(o, [&] { return bench_svg(report); });
  std::ofstream out(o.svg, std::ios::binary);
  out << svg;
  if (!out.flush()) fail(Code::kFailed, "[cli] cannot write {}", o.svg);
}

// 0 among them is none.
std::vector<int64_t> lengths(const std::string& list, const char* what) {
  std::vector<int64_t> numbers = within(list, what, 0, kMostTokens);
  std::erase(numbers, 0);
  return numbers;
}

int bench(BenchOptions o) {
  o.bench.prompts = lengths(o.prompts, "--prompt-tokens");
  o.bench.decodes = lengths(o.decodes, "--decode-tokens");
  o.bench.depths = within(o.depths, "--depth", 0, kMostTokens);
  o.bench.batches = within(o.batches, "--batch", 1, 1024);
  o.bench.log = stderr_log(isatty(STDERR_FILENO));
  // What cannot be compared is refused before anything is measured.
  Json earlier;
  if (!o.against.empty()) earlier = take(api::read_report(read_text(o.against), o.against));
  Json report = o.report.empty() ? take(api::bench(models_of(o), o.bench))
                                 : take(api::read_report(read_text(o.report), o.report));
  if (!o.against.empty()) take(api::compare(report, earlier, o.against));
  if (!o.svg.empty()) draw(report, o);
  print(written(report, o));
  return 0;
}

}  // namespace

Run add_bench(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  add_model_options(app, o->model);
  app.remove_option(app.get_option("--model-path"));
  app.add_option("--model-path,-m", o->paths, "GGUF files; without one, the demo model inside this program")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--prompt-tokens,-p", o->prompts,
                 "Tokens of the prompts that are processed, separated by commas; 0: none");
  app.add_option("--decode-tokens,-n", o->decodes, "Tokens that are decoded, separated by commas; 0: none");
  app.add_option("--depth,-d", o->depths, "Tokens in the cache before, separated by commas");
  app.add_option("--batch,-b", o->batches, "Sequences that decode at once, separated by commas");
  app.add_option("--repetitions,-r", o->bench.repetitions, "How often, after one that is not counted")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--kernels", o->bench.kernels,
               "Time each kernel of a test's last pass as well, one by one (GPU)");
  app.add_option("--report", o->report, "Show this report instead of measuring");
  app.add_option("--against", o->against, "Compare with this earlier report (what --json printed)");
  app.add_option("--svg", o->svg, "Draw the roofline into this file as well");
  auto* json = app.add_flag("--json", o->json, "Print JSON");
  auto* csv = app.add_flag("--csv", o->csv, "Print a line a test, separated by commas")->excludes(json);
  app.add_flag("--md", o->md, "Print tables in Markdown, as without any of the three")
      ->excludes(json)
      ->excludes(csv);
  return [o] { return bench(*o); };
}

}  // namespace juno::cli
