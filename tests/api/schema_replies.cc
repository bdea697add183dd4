// SPDX-License-Identifier: Apache-2.0
// schema_replies MODEL SCHEMAS SEEDS TEMPERATURE: a reply for each schema of the corpus and each seed, one
// JSON object a line. schema_replies.py judges them.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "api/session.h"

namespace {

using nlohmann::ordered_json;

void replies(juno::api::Session& session, const ordered_json& schema, uint64_t seeds, float temperature) {
  juno::api::Generation how{.max_tokens = 600};
  how.grammar = juno::take(juno::api::read_json_schema(schema["schema"].dump()));
  how.sampling.temperature = temperature;
  const juno::api::Message question{"user", "Answer in JSON."};
  for (how.sampling.seed = 0; how.sampling.seed < seeds; ++how.sampling.seed) {
    const auto reply = juno::take(session.chat({&question, 1}, how, {}));
    const ordered_json line = {{"id", schema["id"]},
                               {"seed", how.sampling.seed},
                               {"stopped", reply.reason == juno::api::FinishReason::kStop},
                               {"text", reply.text}};
    std::cout << line.dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    juno::api::SessionOptions options;
    options.model_path = argv[1];
    const auto session = juno::take(juno::api::Session::open(options));
    std::ifstream file(argv[2]);
    for (const ordered_json& schema : ordered_json::parse(file))
      if (schema["must"] == "support") replies(*session, schema, std::stoull(argv[3]), std::stof(argv[4]));
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
