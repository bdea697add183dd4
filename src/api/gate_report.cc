// SPDX-License-Identifier: Apache-2.0
#include "api/gate_report.h"

#include <nlohmann/json.hpp>

#include "api/host.h"
#include "api/revision.h"
#include "backend/backends.h"
#include "base/sha256.h"
#include "base/version.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

// nlohmann::json keeps its keys in order.
std::string checksum(Json report) {
  report.erase("checksum");
  const std::string text = nlohmann::json::parse(report.dump()).dump();
  Sha256 hash;
  hash.add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return hash.hex();
}

std::string_view kernels_of(std::string_view name) {
  for (const Backend& backend : backends())
    if (backend.name == name && backend.kernels) return backend.kernels();
  return "";
}

class Verifier {
 public:
  Verifier(const Json& report, const GateExpectation& expected) : report_(report), expected_(expected) {}

  std::vector<std::string> run() {
    if (text("/checksum") != checksum(report_)) {
      reasons_.push_back("edited: its checksum is not that of its content");
      return std::move(reasons_);  // nothing in it can be relied on
    }
    check_build();
    check_kernels();
    differ("foreign", "the model", text("/model/sha256"), expected_.model_sha256);
    differ("foreign", "the prompts", text("/prompts/sha256"), expected_.prompts_sha256);
    if (expected_.same_host) differ("foreign", "the host's CPU", text("/host/cpu"), cpu_model());
    if (text("/status") != "passed") reasons_.push_back(fmt::format("it says \"{}\"", text("/status")));
    return std::move(reasons_);
  }

 private:
  std::string text(const char* path) const { return report_.at(Json::json_pointer(path)).get<std::string>(); }

  void differ(const char* kind, const char* what, const std::string& then, const std::string& now) {
    if (!now.empty() && then != now)
      reasons_.push_back(fmt::format("{}: {} is {} here, was {}", kind, what, now, then));
  }

  void check_build() {
    const Json now = build_json();
    const auto same = [&](const char* key) { return report_.at("build").at(key) == now.at(key); };
    if (!same("numerics") || !same("juno"))
      reasons_.push_back(fmt::format("stale: it is of juno {}, numerics {}", text("/build/juno"),
                                     report_.at("build").at("numerics").dump()));
    if (!same("sources"))
      reasons_.push_back(
          fmt::format("stale: it was made at commit {}, whose sources are not those of this program ({})",
                      text("/build/commit"), now.at("commit").get<std::string>()));
    if (text("/build/commit") == "unknown")
      reasons_.push_back("foreign: its program does not know its commit");
    if (!text("/build/changes").empty())
      reasons_.push_back("stale: its program held changes that were not committed");
  }

  void check_kernels() {
    for (const Json& arm : report_.at("arms")) {
      if (!arm.contains("device") || arm.at("device").is_null()) continue;
      const std::string backend = arm.at("backend");
      const std::string then = arm.at("device").at("kernels_sha256");
      const std::string now(kernels_of(backend));
      if (then != now)
        reasons_.push_back(fmt::format("stale: the kernels of {} are {} here, were {}", backend,
                                       now.empty() ? "not built in" : now, then));
    }
  }

  const Json& report_;
  const GateExpectation& expected_;
  std::vector<std::string> reasons_;
};

}  // namespace

Json build_json() {
  const Revision& r = revision();
  return {{"commit", r.commit}, {"sources", r.sources},         {"changes", r.changes},
          {"juno", kVersion},   {"numerics", kNumericsVersion}, {"compiler", __VERSION__}};
}

void seal(Json& report) { report["checksum"] = checksum(report); }

Result<std::vector<std::string>> verify_gate(const std::string& text, const std::string& name,
                                             const GateExpectation& expected) {
  return guard([&] {
    const Json file = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    const bool several = file.is_object() && file.contains("reports") && file["reports"].is_array();
    const Json one = Json::array({file});
    std::vector<std::string> reasons;
    for (const Json& report : several ? file["reports"] : one) {
      if (!report.is_object() || !report.contains("juno_gate") || report["juno_gate"] != kGateForm)
        fail(Code::kBadData, "[api] {} is not a report of juno gate of form {}", name, kGateForm);
      try {
        for (const std::string& reason : Verifier(report, expected).run())
          reasons.push_back(several ? fmt::format("{} of {}: {}", report.at("kind").get<std::string>(),
                                                  report.at("model").at("name").get<std::string>(), reason)
                                    : reason);
      } catch (const Json::exception& e) {
        fail(Code::kBadData, "[api] {} is not a whole report of juno gate: {}", name, e.what());
      }
    }
    if (several && file["reports"].empty()) reasons.push_back("it holds no report");
    return reasons;
  });
}

}  // namespace juno::api
