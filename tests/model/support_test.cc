// SPDX-License-Identifier: Apache-2.0
#include "model/support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backend/cpu/cpu_ops.h"
#include "ops/reference.h"

namespace juno::model::testing {
namespace {

std::string path_of(const std::string& file) {
  return std::string(JUNO_SOURCE_DIR "/tests/data/archs/") + file;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// Whether the file's architecture, whose name stands in its first lines, is in the list.
bool is_known(const std::filesystem::path& path) {
  std::string head(256, 0);
  std::ifstream(path, std::ios::binary).read(head.data(), std::streamsize(head.size()));
  return std::ranges::any_of(architectures(), [&](const Entry& entry) {
    const uint32_t type = uint32_t(gguf::ValueType::kString);
    const uint64_t length = entry.name.size();
    std::string needle = "general.architecture";
    needle.append(reinterpret_cast<const char*>(&type), sizeof type);
    needle.append(reinterpret_cast<const char*>(&length), sizeof length);
    return head.find(needle.append(entry.name)) != std::string::npos;
  });
}

// Where the characters of a length-prefixed name begin.
size_t find_name(const std::string& bytes, std::string_view name) {
  const uint64_t length = name.size();
  std::string needle(reinterpret_cast<const char*>(&length), sizeof length);
  const size_t place = bytes.find(needle.append(name));
  if (place == std::string::npos) throw std::invalid_argument("the fixture has no " + std::string(name));
  return place + sizeof length;
}

void set_number(std::string& bytes, std::string_view key, gguf::ValueType type, const void* value) {
  const size_t place = find_name(bytes, key) + key.size();
  uint32_t stored;
  std::memcpy(&stored, &bytes[place], sizeof stored);
  if (stored != uint32_t(type)) throw std::invalid_argument("another type: " + std::string(key));
  std::memcpy(&bytes[place + sizeof stored], value, 4);
}

Tensor row_of(std::vector<int32_t>& values) {
  return {values.data(), DType::kI32, {.rows = 1, .cols = int64_t(values.size())}};
}

}  // namespace

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_of(""))) {
    if (entry.path().extension() == ".gguf" && is_known(entry.path())) names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

std::string test_name(std::string fixture) {
  std::ranges::replace(fixture, '-', '_');
  return fixture;
}

std::string fixture_bytes(const std::string& name) { return read_file(path_of(name + ".gguf")); }

Expected expected(const std::string& name) {
  const auto json = nlohmann::json::parse(read_file(path_of(name + ".json")));
  Expected e{.notes = json["notes"],
             .bound = json["bound"],
             .bound_engine = json["bound_engine"],
             .kv16 = json["kv16_max_abs_diff"],
             .logit_std = json["logit_std"]};
  for (const auto& [feature, value] : json["feature_sensitivity"].items())
    e.sensitivity.emplace_back(feature, value);
  for (const auto& s : json["sequences"]) {
    e.sequences.push_back({.ids = s["ids"],
                           .positions = s["positions"],
                           .context = s["context"],
                           .logits = s["logits"],
                           .engine = s["logits_engine"]});
  }
  return e;
}

gguf::Reader open(const std::string& bytes) {
  return take(gguf::Reader::open_memory({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                                        "test.gguf", {}));
}

std::string complaint(const std::string& bytes) {
  const auto checked = check_model(open(bytes), 0, {});
  return checked ? "" : checked.error().message;
}

void rename(std::string& bytes, std::string_view name, std::string_view other) {
  ASSERT_EQ(name.size(), other.size());
  bytes.replace(find_name(bytes, name), name.size(), other);
}

void take_away(std::string& bytes, std::string_view name) {
  std::string other(name);
  other.back() = '~';
  rename(bytes, name, other);
}

void set_u32(std::string& bytes, std::string_view key, uint32_t value) {
  set_number(bytes, key, gguf::ValueType::kU32, &value);
}

void set_f32(std::string& bytes, std::string_view key, float value) {
  set_number(bytes, key, gguf::ValueType::kF32, &value);
}

std::unique_ptr<ops::Executor> reference(ops::Activations activations) {
  return std::make_unique<ops::Reference>(activations);
}

std::unique_ptr<ops::Executor> cpu(int threads, ops::Activations activations) {
  return take(cpu::open_cpu({.threads = threads, .activations = activations}));
}

Bench::Bench(gguf::Reader file, int64_t context, std::unique_ptr<ops::Executor> op)
    : op_(std::move(op)), model_(take(load_model(std::move(file), context, op_->device(), {}))) {
  const ops::KvShape shape = model_.config.kv_shape();
  const int64_t slots = int64_t{shape.kv_heads} * ops::kPagePositions;
  const auto cache = [&](int width) {
    const Shape s{.planes = kSequences * kPagesEach, .rows = slots, .cols = width};
    cache_.emplace_back(s.size());
    return Tensor{cache_.back().data(), DType::kF16, s};
  };
  for (int i = 0; i < model_.config.layers; ++i)
    layers_.push_back({cache(shape.key_dim), cache(shape.value_dim)});
  // Pages of one sequence are not neighbours.
  for (int s = 0; s < kSequences; ++s)
    for (int p = 0; p < kPagesEach; ++p) pages_[s].push_back(p * kSequences + (s + p) % kSequences);

  std::vector<int32_t> rows(kMostRows);
  const ops::Run run{.rows = kMostRows, .pages = pages_[0]};
  const Batch largest{.tokens = row_of(rows),
                      .positions = row_of(rows),
                      .outputs = row_of(rows),
                      .runs = {&run, 1},
                      .layers = layers_};
  take(op_->plan(largest, [&](const Batch& b) { forward(*model_.architecture, *op_, b); }));
}

std::vector<std::vector<float>> Bench::run(const std::vector<Chunk>& chunks) {
  std::vector<int32_t> tokens, positions;
  std::vector<ops::Run> runs;
  for (const Chunk& chunk : chunks) {
    int& position = position_[chunk.sequence];
    runs.push_back({.first_row = int32_t(tokens.size()),
                    .rows = int32_t(chunk.ids.size()),
                    .position = position,
                    .pages = pages_[chunk.sequence]});
    for (int32_t id : chunk.ids) {
      tokens.push_back(id);
      positions.push_back(position++);
    }
  }
  std::vector<int32_t> outputs(tokens.size());
  std::iota(outputs.begin(), outputs.end(), 0);
  const Batch batch{.tokens = row_of(tokens),
                    .positions = row_of(positions),
                    .outputs = row_of(outputs),
                    .runs = runs,
                    .layers = layers_};
  const Tensor logits = forward(*model_.architecture, *op_, batch);
  EXPECT_EQ(logits.shape, (Shape{.rows = int64_t(tokens.size()), .cols = model_.config.vocab}));
  std::vector<float> flat(logits.shape.size());
  op_->device().read(flat.data(), logits);
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto row = flat.begin() + int64_t(i) * model_.config.vocab;
    rows.emplace_back(row, row + model_.config.vocab);
  }
  return rows;
}

std::vector<std::vector<float>> logits_in_pieces(const std::string& bytes, const Expected::Sequence& sequence,
                                                 std::unique_ptr<ops::Executor> op, size_t first,
                                                 size_t rest) {
  Bench bench(open(bytes), sequence.context, std::move(op));
  std::vector<std::vector<float>> all;
  for (size_t at = 0; at < sequence.ids.size();) {
    const size_t count = std::min(at ? rest : first, sequence.ids.size() - at);
    const auto from = sequence.ids.begin() + int64_t(at);
    for (auto& row : bench.run({{0, {from, from + int64_t(count)}}})) all.push_back(std::move(row));
    at += count;
  }
  std::vector<std::vector<float>> wanted;
  for (int32_t position : sequence.positions) wanted.push_back(all.at(position));
  return wanted;
}

double largest_difference(const std::vector<std::vector<float>>& a,
                          const std::vector<std::vector<float>>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].size() != b[i].size()) return INFINITY;
    for (size_t j = 0; j < a[i].size(); ++j) {
      const double difference = std::fabs(double(a[i][j]) - b[i][j]);
      if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
    }
  }
  return largest;
}

bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  return std::ranges::equal(a, b, [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  });
}

}  // namespace juno::model::testing
