// SPDX-License-Identifier: Apache-2.0
// A gate that cannot fail proves nothing: it is shown wrong bits and must find them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/gate.h"
#include "api/gate_report.h"
#include "api/open.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

GateOptions small_gate() {
  return {.kind = "parity",
          .arms = {"cpu", "cpu"},
          .prompts = {"Once upon a time there was a machine.", "One and one is"},
          .prompts_name = "self-test",
          .max_tokens = 3,
          .batches = {1, 2}};
}

SelfTest expect_pass(const Json& report) {
  return {"two arms that are alike pass", report["status"] == "passed", report["why"].dump()};
}

// The gate must fail, and name the place.
SelfTest expect_divergence(std::string name, const Json& report, const Json& where) {
  const Json& found = report["first_divergence"];
  bool good = report["status"] == "failed" && found.is_object() && gate_exit(report) == 1;
  for (const auto& [key, value] : where.items()) good = good && found.contains(key) && found[key] == value;
  return {std::move(name), good, found.dump()};
}

SelfTest expect_edited(Json report) {
  report["settings"]["max_tokens"] = 64;
  const auto reasons = take(verify_gate(report.dump(), "self-test", {}));
  const bool good = !reasons.empty() && reasons.front().starts_with("edited");
  return {"a report of which one number was changed is refused", good, Json(reasons).dump()};
}

// A model one of whose weights has another lowest bit in one arm only. The weight is of a layer, so that
// every token meets it.
SelfTest wrong_weight(const SessionOptions& session, const Json& right) {
  const gguf::Reader file = open_file(session);
  const gguf::TensorInfo* tensor = file.tensor("blk.0.attn_v.weight");
  if (!tensor || session.model_bytes.empty())
    return {"one wrong bit of a weight is found", false, "no weight to change"};
  std::vector<uint64_t> storage((session.model_bytes.size() + 7) / 8);
  auto* bytes = reinterpret_cast<uint8_t*>(storage.data());
  std::copy(session.model_bytes.begin(), session.model_bytes.end(), bytes);
  bytes[tensor->data - session.model_bytes.data() + 7] ^= 1;
  SessionOptions changed = session;
  changed.model_bytes = {bytes, session.model_bytes.size()};
  const Json wrong = take(gate(changed, small_gate()));
  const bool found =
      wrong["answers"] != right["answers"] && wrong["model"]["sha256"] != right["model"]["sha256"];
  return {"one wrong bit of a weight changes the hashes of the logits", found, ""};
}

}  // namespace

Result<std::vector<SelfTest>> gate_self_test(const SessionOptions& session) {
  return guard([&] {
    std::vector<SelfTest> tests;
    const GateOptions how = small_gate();
    const Json right = take(gate(session, how));
    tests.push_back(expect_pass(right));
    GateOptions::WrongBit wrong{.arm = 1, .mode = 3, .prompt = 1, .row = 2};
    GateOptions tampered = how;
    tampered.wrong = &wrong;
    tests.push_back(expect_divergence(
        "one wrong bit in the last logits of one batch is found, and where it is",
        take(gate(session, tampered)), {{"arm", "cpu"}, {"batch", 2}, {"prompt", 1}, {"token", 2}}));
    tests.push_back(wrong_weight(session, right));
    tests.push_back(expect_edited(right));
    return tests;
  });
}

}  // namespace juno::api
