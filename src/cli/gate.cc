// SPDX-License-Identifier: Apache-2.0
#include "api/gate.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/gate_report.h"
#include "cli/format.h"
#include "cli/options.h"

namespace juno::cli {
namespace {

using Json = nlohmann::ordered_json;

struct GateOptions {
  std::string what, given;  // a kind, "verify" or "self-test"; the report to verify
  ModelOptions model;
  api::GateOptions gate;
  std::string prompts, arm = "both", gpu_backend = "cuda", report, batches;
  bool same_host = false;
};

// Prompts are separated by lines of three dashes; what is between is a prompt, line ends and all, but for the
// last.
std::vector<std::string> prompts_of(const std::string& text) {
  std::vector<std::string> prompts(1);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "---") prompts.emplace_back();
    else prompts.back() += line + "\n";
  }
  for (std::string& p : prompts)
    if (!p.empty()) p.pop_back();
  std::erase(prompts, "");
  return prompts;
}

void write_report(const Json& report, const std::string& path) {
  const std::string text = report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (path.empty() || path == "-") return print(text);
  std::ofstream out(path, std::ios::binary);
  if (!(out << text << std::flush)) fail(Code::kFailed, "[cli] cannot write {}", path);
}

std::string speeds(const Json& arm) {
  double prefill = 0, decode = 0;
  for (const Json& mode : arm.at("modes")) {
    prefill = std::max(prefill, mode.at("prefill_tokens_per_second").get<double>());
    decode = std::max(decode, mode.at("decode_tokens_per_second").get<double>());
  }
  return fmt::format("at most {:.0f} t/s of prompts, {:.0f} t/s decoded", prefill, decode);
}

void tell_result(const Json& report) {
  for (const Json& arm : report.at("arms"))
    if (arm.contains("routing"))
      tell(fmt::format("{} {}: {}, {} launches, {} operations elsewhere",
                       arm.at("backend").get<std::string>(), arm.at("isa").get<std::string>(), speeds(arm),
                       arm.at("routing").at("launches").dump(), arm.at("routing").at("declined").dump()));
  for (const Json& why : report.at("why")) tell("why: " + printable(why.get<std::string>()));
  if (!report.at("first_divergence").is_null()) tell("first: " + report.at("first_divergence").dump());
  size_t answers = 0, different = 0;
  for (const Json& c : report.at("comparisons")) {
    answers += c.at("answers").get<size_t>();
    different += c.at("different").get<size_t>();
  }
  tell(fmt::format("gate {}: {}, {} answers compared, {} differ", report.at("kind").get<std::string>(),
                   report.at("status").get<std::string>(), answers, different));
}

std::vector<std::string> arms_of(const GateOptions& o) {
  if (o.arm == "cpu") return {"cpu"};
  if (o.arm == "gpu") return {o.gpu_backend};
  return {"cpu", o.gpu_backend};
}

int run_gate(GateOptions o) {
  if (o.prompts.empty()) fail(Code::kUsage, "[cli] juno gate {} needs --prompts", o.what);
  o.gate.kind = o.what;
  o.gate.arms = arms_of(o);
  o.gate.prompts = prompts_of(read_text(o.prompts));
  o.gate.prompts_name = o.prompts;
  if (o.gate.prompts.empty()) fail(Code::kBadData, "[cli] {} holds no prompt", o.prompts);
  if (!o.batches.empty()) o.gate.batches = parse_numbers(o.batches, "--batch");
  o.gate.log = stderr_log(isatty(STDERR_FILENO));
  const Json report = take(api::gate(o.model.opened(Log{}), o.gate));
  write_report(report, o.report);
  tell_result(report);
  return api::gate_exit(report);
}

int verify(const GateOptions& o) {
  if (o.given.empty()) fail(Code::kUsage, "[cli] juno gate verify needs a report");
  api::GateExpectation expected{.same_host = o.same_host};
  if (!o.model.model_path.empty()) expected.model_sha256 = take(api::model_sha256(o.model.opened(Log{})));
  if (!o.prompts.empty()) expected.prompts_sha256 = api::prompts_sha256(prompts_of(read_text(o.prompts)));
  const auto reasons = take(api::verify_gate(read_text(o.given), o.given, expected));
  for (const std::string& reason : reasons) print(fmt::format("rejected: {}\n", printable(reason)));
  if (reasons.empty()) print("holds\n");
  return reasons.empty() ? 0 : 1;
}

int self_test(const GateOptions& o) {
  bool good = true;
  for (const api::SelfTest& test : take(api::gate_self_test(o.model.opened(Log{})))) {
    print(fmt::format("{} {}{}\n", test.good ? "ok  " : "FAIL", test.name,
                      test.good ? "" : ": " + printable(test.why)));
    good = good && test.good;
  }
  return good ? 0 : 1;
}

}  // namespace

Run add_gate(CLI::App& app) {
  auto o = std::make_shared<GateOptions>();
  std::vector<std::string> whats = api::gate_kinds();
  whats.insert(whats.end(), {"self-test", "verify"});
  app.add_option("what", o->what, "capability, parity, decode, prefill; self-test; verify REPORT")
      ->required()
      ->check(CLI::IsMember(whats));
  app.add_option("file", o->given, "The report that verify reads");
  add_model_options(app, o->model);
  app.add_option("--prompts", o->prompts, "File of prompts, separated by lines of three dashes");
  app.add_option("--max-tokens,-n", o->gate.max_tokens, "Tokens of each answer")
      ->transform(in_range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--batch,-b", o->batches,
                 "Of 1, 2, 7 and 32 prompts at once, those that are asked; without it, all");
  app.add_option("--arm", o->arm, "What runs: both compares a GPU with the CPU, one alone with itself")
      ->check(CLI::IsMember({"both", "gpu", "cpu"}));
  app.add_option("--gpu-backend", o->gpu_backend,
                 "What plays the GPU: cuda, or gpu-host and reference on a CPU");
  app.add_option("--report", o->report, "Where the report goes; without it, stdout");
  app.add_flag("--require-device", o->gate.require_device, "Run nothing unless every arm can run");
  app.add_flag("--same-host", o->same_host, "verify: refuse a report of another processor");
  return [o] {
    if (o->what == "verify") return verify(*o);
    if (!o->given.empty()) fail(Code::kUsage, "[cli] juno gate {} takes no file", o->what);
    return o->what == "self-test" ? self_test(*o) : run_gate(*o);
  };
}

}  // namespace juno::cli
