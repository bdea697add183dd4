// SPDX-License-Identifier: Apache-2.0
// Whole models on every instruction set: the hashes of tests/golden/logits.txt.
#include <fstream>
#include <sstream>

#include "backend/cpu/isa_test.h"
#include "base/hash.h"
#include "model/support.h"

namespace juno::cpu {
namespace {

using ops::Activations;

struct Line {
  std::string model, profile, hash;
  std::vector<int32_t> ids;
};

const std::string kSource = JUNO_SOURCE_DIR;

std::vector<Line> golden_lines() {
  std::ifstream file(kSource + "/tests/golden/logits.txt");
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    if (text.empty() || text[0] == '#') continue;
    Line line;
    std::string ids;
    std::istringstream(text) >> line.model >> line.profile >> ids >> line.hash;
    std::istringstream numbers(ids);
    for (std::string id; std::getline(numbers, id, ',');) line.ids.push_back(std::stoi(id));
    lines.push_back(line);
  }
  return lines;
}

// Tokens [0, first) in one pass, the others one by one.
std::string hash_of(const Line& line, std::unique_ptr<ops::Executor> on, size_t first) {
  model::testing::Bench bench(take(gguf::Reader::open(kSource + "/" + line.model, {})), 64, std::move(on));
  Fnv1a hash;
  for (size_t at = 0; at < line.ids.size();) {
    const size_t count = at == 0 ? std::min(first, line.ids.size()) : 1;
    const auto begin = line.ids.begin() + static_cast<std::ptrdiff_t>(at);
    const auto rows = bench.run({{0, {begin, begin + static_cast<std::ptrdiff_t>(count)}}});
    for (const auto& row : rows) hash.add(row.data(), row.size() * sizeof(float));
    at += count;
  }
  return fmt::format("{:016x}", hash.value());
}

class Golden : public test::OnEveryIsa {};

TEST_P(Golden, HashesAreThoseOfEveryInstructionSet) {
  const std::vector<Line> lines = golden_lines();
  ASSERT_GE(lines.size(), 5u);
  for (const Line& line : lines) {
    const Activations profile = line.profile == "int8x2" ? Activations::kInt8x2 : Activations::kInt8;
    for (const size_t first : {line.ids.size(), line.ids.size() - 3})
      EXPECT_EQ(hash_of(line, open(profile), first), line.hash) << line.model << " " << line.profile;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Golden, test::every_isa(), test::isa_name);

}  // namespace
}  // namespace juno::cpu
