// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "base/hash.h"
#include "cli/interrupt.h"
#include "cli/options.h"

namespace juno::cli {
namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string ids, positions = "last";
  int top = 10;
  bool json = false, hash = false;
};

std::vector<int64_t> positions_of(const std::string& text, size_t tokens) {
  if (text == "all") return {};
  if (text == "last") return {static_cast<int64_t>(tokens) - 1};
  std::vector<int64_t> positions = parse_numbers(text, "--positions");
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] < 0 || positions[i] >= static_cast<int64_t>(tokens))
      fail(Code::kUsage, "[cli] --positions: {} is not a position of {} ids", positions[i], tokens);
    if (i > 0 && positions[i] <= positions[i - 1])
      fail(Code::kUsage, "[cli] --positions: {} after {}, they must increase", positions[i],
           positions[i - 1]);
  }
  return positions;
}

// The most probable ids of a position, for people.
void print_top(int64_t position, std::span<const float> logits, int top) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = order.begin() + std::min<std::ptrdiff_t>(top, std::ssize(order));
  std::partial_sort(order.begin(), kept, order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::string text = fmt::format("position {}\n", position);
  for (auto id = order.begin(); id != kept; ++id) text += fmt::format("  {:>8} {:>14}\n", *id, logits[*id]);
  print(text);
}

int logits(const LogitsOptions& o) {
  std::vector<int32_t> ids;
  for (int64_t id : parse_numbers(o.ids, "--ids")) {
    if (id < 0 || id > INT32_MAX) fail(Code::kUsage, "[cli] --ids: {} is no token id", id);
    ids.push_back(static_cast<int32_t>(id));
  }
  const std::vector<int64_t> positions = positions_of(o.positions, ids.size());
  const auto session = open_session(o.model, stderr_log(false));
  Fnv1a hash;
  bool first = true;
  const Interruptible scope(*session);
  take(session->logits(ids, positions, 0, [&](int64_t position, std::span<const float> row) {
    if (o.hash) hash.add(row.data(), row.size_bytes());
    else if (o.json) print(fmt::format("{}[{}]", first ? "[" : ",\n", fmt::join(row, ",")));
    else print_top(position, row, o.top);
    first = false;
  }));
  if (o.hash) print(fmt::format("{:016x}\n", hash.value()));
  else if (o.json) print("]\n");
  return 0;
}

}  // namespace

Run add_logits(CLI::App& app) {
  auto o = std::make_shared<LogitsOptions>();
  add_model_options(app, o->model);
  app.add_option("--ids", o->ids, "Token ids, separated by commas")->required();
  app.add_option("--positions", o->positions, "all, last, or positions separated by commas");
  app.add_option("--top", o->top, "How many of the most probable ids to list")
      ->transform(in_range(int64_t{1}, int64_t{INT32_MAX}));
  auto* json =
      app.add_flag("--json", o->json, "An array of arrays, one a position, floats that read back exactly");
  app.add_flag("--hash", o->hash, "A hash of the logits' raw bits (64-bit FNV-1a over little-endian f32)")
      ->excludes(json);
  return [o] { return logits(*o); };
}

}  // namespace juno::cli
