// SPDX-License-Identifier: Apache-2.0
#include "api/bench.h"

#include <fmt/chrono.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "api/bench_model.h"
#include "api/host.h"
#include "api/placement.h"
#include "backend/cpu/rates.h"
#include "base/cpu_limits.h"
#include "base/fp_env.h"
#include "base/version.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kForm = 1;              // of the report
constexpr uint64_t kProbeMemory = 4;  // a quarter of what is free, at most

Json load_average() {
  double minutes[3] = {};
  if (::getloadavg(minutes, 3) != 3) return nullptr;
  return minutes;
}

std::string now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

// Measured before and after the models: the better of both is the limit, for neighbours come and go. Of a
// card only how fast its memory is.
class Limits {
 public:
  explicit Limits(ops::Executor& ops) : ops_(ops) {}

  void measure() {
    if (ops_.device().memory()) {
      rates_.push_back({.read = ops_.device().copy_rate()});
    } else {
      rates_.push_back(cpu::measure_rates(ops_.isa(), ops_.threads(), host_memory().usable() / kProbeMemory));
    }
  }
  double read() const { return best(&cpu::Rates::read); }
  double multiply_add() const { return best(&cpu::Rates::multiply_add); }
  Json json() const {
    Json measured = Json::array();
    for (const cpu::Rates& r : rates_)
      measured.push_back({{"read_bytes_per_second", r.read},
                          {"multiply_adds_per_second", r.multiply_add},
                          {"buffer_bytes", r.buffer}});
    return {{"read_bytes_per_second", read()},
            {"multiply_adds_per_second", multiply_add()},
            {"measured", measured}};
  }

 private:
  double best(double cpu::Rates::*of) const {
    double most = 0;
    for (const cpu::Rates& r : rates_) most = std::max(most, r.*of);
    return most;
  }

  ops::Executor& ops_;
  std::vector<cpu::Rates> rates_;
};

void add_shares(Json& models, const Limits& limits) {
  for (Json& model : models) {
    for (Json& test : model["tests"]) {
      const auto share = [&](const char* rate, double limit) {
        return limit > 0 ? Json(test[rate].get<double>() / limit) : Json();
      };
      test["bandwidth_share"] = share("weight_bytes_per_second", limits.read());
      test["multiply_add_share"] = share("multiply_adds_per_second", limits.multiply_add());
    }
  }
}

Json settings(const SessionOptions& session, const BenchOptions& how) {
  return {{"prompts", how.prompts},
          {"decodes", how.decodes},
          {"depths", how.depths},
          {"batches", how.batches},
          {"repetitions", how.repetitions},
          {"chunk", session.chunk},
          {"activations", session.activations}};
}

// The tests of two reports that measure the same thing.
bool same_test(const Json& a, const Json& b) {
  for (const char* key : {"test", "tokens", "depth", "batch"})
    if (a.at(key) != b.at(key)) return false;
  return true;
}

const Json* find_test(const Json& report, const std::string& sha256, const Json& test) {
  for (const Json& model : report.at("models")) {
    if (model.at("sha256") != sha256) continue;
    for (const Json& t : model.at("tests"))
      if (same_test(t, test)) return &t;
  }
  return nullptr;
}

Json against(const Json& now, const Json& then) {
  const Json &a = now.at("tokens_per_second"), &b = then.at("tokens_per_second");
  return {{"ratio", a.at("median").get<double>() / b.at("median").get<double>()},
          {"apart", a.at("min") > b.at("max") || a.at("max") < b.at("min")},
          {"tokens_per_second", b},
          {"same_tokens", now.at("sampled") == then.at("sampled")}};
}

// What may explain a ratio other than the program.
Json differences(const Json& now, const Json& then) {
  static constexpr const char* kPaths[] = {
      "/machine/cpu",          "/machine/isa",       "/machine/threads",
      "/settings/activations", "/settings/chunk",    "/settings/repetitions",
      "/versions/juno",        "/versions/numerics", "/versions/compiler"};
  Json list = Json::array();
  for (const char* path : kPaths) {
    const Json::json_pointer at(path);
    if (now.at(at) != then.at(at))
      list.push_back({{"what", path + 1}, {"now", now.at(at)}, {"then", then.at(at)}});
  }
  return list;
}

// A file that says it is a report and is none fails where something is missed.
template <class Body>
auto reading(const std::string& name, Body&& body) {
  return guard([&] {
    try {
      return body();
    } catch (const Json::exception& e) {
      fail(Code::kBadData, "[api] {} is not a whole report of juno bench: {}", name, e.what());
    }
  });
}

}  // namespace

Result<Json> bench(std::span<const SessionOptions> models, const BenchOptions& how) {
  return guard([&] {
    const FpEnv mode;
    const SessionOptions& first = models.front();
    const auto ops = open_executor(first);
    Limits limits(*ops);
    Json report = {
        {"juno_bench", kForm},
        {"date", now()},
        {"versions", {{"juno", kVersion}, {"numerics", kNumericsVersion}, {"compiler", __VERSION__}}},
        {"machine",
         {{"cpu", cpu_model()},
          {"processors", cpu_limits().affinity},
          {"backend", ops->backend()},
          {"isa", ops->isa()},
          {"device", device_json(ops->device())},
          {"threads", ops->threads()},
          {"load_average", {{"start", load_average()}}}}},
        {"settings", settings(first, how)}};
    limits.measure();
    Json list = Json::array();
    for (const SessionOptions& model : models) list.push_back(bench_model(model, how));
    limits.measure();
    add_shares(list, limits);
    report["machine"]["load_average"]["end"] = load_average();
    report["machine"]["limits"] = limits.json();
    report["models"] = std::move(list);
    return report;
  });
}

Result<Json> read_report(const std::string& text, const std::string& name) {
  return reading(name, [&] {
    Json report = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!report.is_object() || !report.contains("juno_bench"))
      fail(Code::kBadData, "[api] {} is not a report of juno bench", name);
    if (report["juno_bench"] != kForm)
      fail(Code::kBadData, "[api] {} is a report of form {}; this program reads form {}", name,
           report["juno_bench"].dump(), kForm);
    Json itself = report;
    take(compare(itself, report, name));  // meets every field that a comparison needs
    return report;
  });
}

Result<void> compare(Json& report, const Json& earlier, const std::string& name) {
  return reading(name, [&] {
    Json unmatched = Json::array();
    for (Json& model : report.at("models")) {
      const std::string sha256 = model.at("sha256");
      for (Json& test : model.at("tests")) {
        if (const Json* then = find_test(earlier, sha256, test)) test["against"] = against(test, *then);
        else
          unmatched.push_back({{"path", model.at("path")},
                               {"test", test.at("test")},
                               {"tokens", test.at("tokens")},
                               {"depth", test.at("depth")},
                               {"batch", test.at("batch")}});
      }
    }
    report["against"] = {{"name", name},
                         {"date", earlier.at("date")},
                         {"differences", differences(report, earlier)},
                         {"unmatched", unmatched}};
  });
}

}  // namespace juno::api
