// SPDX-License-Identifier: Apache-2.0
#include "api/gate.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/file_hash.h"
#include "api/gate_arm.h"
#include "api/gate_report.h"
#include "api/host.h"
#include "api/open.h"
#include "base/cpu_limits.h"
#include "base/fp_env.h"
#include "base/sha256.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

struct Kind {
  const char* name;
  std::vector<GateMode> modes;
  size_t most_prompts;
  int64_t most_tokens;
  bool prompt_logits;
};

constexpr int kSmallChunk = 17;  // divides neither a page nor a tile

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"capability", {{1, 0, true}, {1, 0, false}}, 1, 4, false},
      {"parity",
       {{1, 0, true},
        {1, kSmallChunk, true},
        {1, 64, false},
        {2, 64, true},
        {7, 64, true},
        {7, kSmallChunk, true},
        {32, 64, true},
        {32, 64, false}},
       SIZE_MAX,
       INT64_MAX,
       false},
      {"decode",
       {{1, 0, true}, {1, 0, false}, {2, 64, false}, {7, 64, false}, {32, 64, false}},
       SIZE_MAX,
       INT64_MAX,
       false},
      {"prefill", {{1, 0, true}, {1, kSmallChunk, true}, {1, 64, true}, {7, 256, true}}, SIZE_MAX, 1, true},
  };
  return kKinds;
}

const Kind& find_kind(const std::string& name) {
  for (const Kind& kind : kinds())
    if (name == kind.name) return kind;
  fail(Code::kUsage, "[api] no gate is called \"{}\"; there are {}", name, fmt::join(gate_kinds(), ", "));
}

std::string hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

// Where an answer leaves the expected one: the row of its tokens or logits.
std::optional<Json> divergence(const GateAnswer& expected, const GateAnswer& got, bool logits) {
  const size_t lead = expected.hashes.size() - expected.ids.size();  // of the prompt's other positions
  if (logits && got.hashes.size() != expected.hashes.size())
    return Json{{"token", 0}, {"expected_rows", expected.hashes.size()}, {"rows", got.hashes.size()}};
  for (size_t i = 0; logits && i < lead; ++i)
    if (got.hashes[i] != expected.hashes[i])
      return Json{{"token", 0},
                  {"position", i},
                  {"expected_hash", hex(expected.hashes[i])},
                  {"hash", hex(got.hashes[i])}};
  for (size_t i = 0; i < std::max(expected.ids.size(), got.ids.size()); ++i) {
    const bool both = i < expected.ids.size() && i < got.ids.size();
    const bool same_hash = !logits || (both && got.hashes[lead + i] == expected.hashes[lead + i]);
    if (both && same_hash && got.ids[i] == expected.ids[i]) continue;
    const auto id = [i](const GateAnswer& a) { return i < a.ids.size() ? Json(a.ids[i]) : Json(); };
    Json d = {{"token", i}, {"expected_id", id(expected)}, {"id", id(got)}};
    if (logits && both) {
      d["expected_hash"] = hex(expected.hashes[lead + i]);
      d["hash"] = hex(got.hashes[lead + i]);
    }
    return d;
  }
  return {};
}

// Reports travel: folders of this machine stay here.
std::string file_part(const std::string& path) { return std::filesystem::path(path).filename(); }

class Gate {
 public:
  Gate(const SessionOptions& session, const GateOptions& how)
      : session_(session), how_(how), kind_(find_kind(how.kind)) {
    if (how.arms.empty() || how.prompts.empty() || how.max_tokens < 1)
      fail(Code::kUsage, "[api] a gate needs an arm, a prompt and a token");
    work_.prompts.assign(
        how.prompts.begin(),
        how.prompts.begin() + static_cast<ptrdiff_t>(std::min(how.prompts.size(), kind_.most_prompts)));
    work_.max_tokens = std::min(how.max_tokens, kind_.most_tokens);
    work_.prompt_logits = kind_.prompt_logits;
    for (const GateMode& mode : kind_.modes)
      if (work_.modes.empty() || how.batches.empty() ||
          std::ranges::find(how.batches, mode.batch) != how.batches.end())
        work_.modes.push_back(mode);
  }

  Json run() {
    describe();
    std::vector<size_t> able;
    for (size_t arm = 0; arm < how_.arms.size(); ++arm)
      if (can_run(how_.arms[arm])) able.push_back(arm);
    if (!how_.require_device || able.size() == how_.arms.size())
      for (size_t arm : able) run_one(arm);
    report_["status"] = able.size() < how_.arms.size() ? "could not run"
                        : failed_.empty()              ? "passed"
                                                       : "failed";
    report_["why"] = able.size() < how_.arms.size() ? missing_ : failed_;
    report_["arms"] = std::move(arms_);
    report_["comparisons"] = std::move(comparisons_);
    report_["first_divergence"] = std::move(first_divergence_);
    report_["answers"] = std::move(answers_);
    seal(report_);
    return std::move(report_);
  }

 private:
  void describe() {
    Json model = file_hash(session_);
    const gguf::Reader file = open_file(session_);
    model["name"] = file_part(file.name());
    model["bytes"] = file.file_bytes();
    Json modes = Json::array();
    for (const GateMode& m : work_.modes)
      modes.push_back({{"batch", m.batch}, {"chunk", m.chunk}, {"logits", m.logits}});
    report_ = {
        {"juno_gate", kGateForm},
        {"kind", how_.kind},
        {"status", ""},
        {"why", Json::array()},
        {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
        {"build", build_json()},
        {"host",
         {{"cpu", cpu_model()}, {"processors", cpu_limits().affinity}, {"memory", host_memory().total}}},
        {"model", std::move(model)},
        {"prompts",
         {{"name", file_part(how_.prompts_name)},
          {"sha256", prompts_sha256(how_.prompts)},
          {"count", work_.prompts.size()}}},
        {"settings",
         {{"max_tokens", work_.max_tokens},
          {"activations", session_.activations},
          {"context", session_.context},
          {"arms", how_.arms},
          {"modes", std::move(modes)},
          {"require_device", how_.require_device}}}};
  }

  bool can_run(const std::string& arm) {
    const Result<void> opens = guard([&] { take(open_arm(arm)); });
    if (opens) return true;
    missing_.push_back(fmt::format("{}: {}", arm, opens.error().message));
    how_.log.warn("{}", missing_.back());
    return false;
  }

  Result<std::unique_ptr<ops::Executor>> open_arm(const std::string& arm) {
    SessionOptions o = session_;
    o.backend = arm;
    o.log = Log{};
    return guard([&] { return open_executor(o); });
  }

  void run_one(size_t arm) {
    const std::string& name = how_.arms[arm];
    how_.log.info("[api] gate {}: {} prompts, {} tokens on {}", how_.kind, work_.prompts.size(),
                  work_.max_tokens, name);
    SessionOptions options = session_;
    options.backend = name;
    if (options.gpu_layers.empty() && name != "cpu")
      options.gpu_layers = "all";  // all of it, or it is no arm
    work_.tamper = {};
    if (how_.wrong && how_.wrong->arm == arm) {
      work_.tamper = [w = *how_.wrong](size_t mode, size_t prompt, size_t row, std::span<float> logits) {
        if (mode == w.mode && prompt == w.prompt && row == w.row) reinterpret_cast<uint32_t&>(logits[0]) ^= 1;
      };
    }
    Json modes = Json::array();
    Json described;
    const Result<void> ran = guard([&] {
      described = run_arm(options, work_, [&](size_t mode, std::vector<GateAnswer> answers, Json figures) {
        modes.push_back(std::move(figures));
        compare(name, mode, answers);
      });
    });
    if (!ran) {
      failed_.push_back(fmt::format("{}: {}", name, ran.error().message));
      described = {{"backend", name}, {"device", nullptr}, {"error", ran.error().message}};
    } else {
      check_routing(name, described);
    }
    described["modes"] = std::move(modes);
    arms_.push_back(std::move(described));
  }

  // What was to run on a device has run there, all of it.
  void check_routing(const std::string& arm, const Json& described) {
    const Json& routing = described.at("routing");
    const auto count = [&](const char* key) { return routing.at(key).get<uint64_t>(); };
    if (count("declined") > 0)
      failed_.push_back(fmt::format("{}: {} operations ran elsewhere than asked", arm, count("declined")));
    if (count("launch_failures") + count("failures") > 0)
      failed_.push_back(
          fmt::format("{}: {} launches failed", arm, count("launch_failures") + count("failures")));
    if (!described.at("device").is_null() && count("launches") == 0)
      failed_.push_back(fmt::format("{}: nothing was launched on its device", arm));
  }

  // Prompts that were asked more than once answer for the same prompt.
  void compare(const std::string& arm, size_t mode, const std::vector<GateAnswer>& answers) {
    if (expected_.empty()) {
      expected_ = answers;
      for (const GateAnswer& a : answers) {
        Json hashes = Json::array();
        for (uint64_t h : a.hashes) hashes.push_back(hex(h));
        answers_.push_back({{"ids", a.ids}, {"hashes", std::move(hashes)}});
      }
      return;
    }
    const GateMode& how = work_.modes[mode];
    size_t apart = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      const size_t prompt = i % expected_.size();
      std::optional<Json> d = divergence(expected_[prompt], answers[i], how.logits);
      if (!d) continue;
      ++apart;
      Json where = {{"arm", arm}, {"batch", how.batch}, {"chunk", how.chunk}, {"prompt", prompt}};
      where.update(*d);
      if (first_divergence_.is_null()) {
        failed_.push_back(fmt::format("{}: batch {}, chunk {}: prompt {} differs at token {}", arm, how.batch,
                                      how.chunk, prompt, d->at("token").get<size_t>()));
        first_divergence_ = where;
      }
    }
    comparisons_.push_back({{"arm", arm},
                            {"batch", how.batch},
                            {"chunk", how.chunk},
                            {"logits", how.logits},
                            {"answers", answers.size()},
                            {"different", apart}});
  }

  const SessionOptions& session_;
  const GateOptions& how_;
  const Kind& kind_;
  GateWork work_;
  std::vector<GateAnswer> expected_;  // of the first arm's first mode
  std::vector<std::string> failed_, missing_;
  Json report_, first_divergence_;
  Json arms_ = Json::array(), comparisons_ = Json::array(), answers_ = Json::array();
};

}  // namespace

std::vector<std::string> gate_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.emplace_back(kind.name);
  return names;
}

Result<Json> gate(const SessionOptions& session, const GateOptions& how) {
  return guard([&] {
    const FpEnv mode;
    return Gate(session, how).run();
  });
}

std::string prompts_sha256(const std::vector<std::string>& prompts) {
  Sha256 hash;
  for (const std::string& p : prompts) {
    const std::string line = p + '\n';
    hash.add({reinterpret_cast<const uint8_t*>(line.data()), line.size()});
  }
  return hash.hex();
}

Result<std::string> model_sha256(const SessionOptions& session) {
  return guard([&] { return file_hash(session).at("sha256").get<std::string>(); });
}

int gate_exit(const Json& report) {
  const std::string status = report.at("status");
  return status == "passed" ? 0 : status == "failed" ? 1 : 2;
}

}  // namespace juno::api
