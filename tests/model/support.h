// SPDX-License-Identifier: Apache-2.0
// For the tests of this room: fixtures, damage done to their bytes, and a bench that runs a model.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "ops/executor.h"

namespace juno::model::testing {

// A fixture's JSON; see tests/data/archs/README.md.
struct Expected {
  struct Sequence {
    std::vector<int32_t> ids, positions;
    int64_t context = 0;
    std::vector<std::vector<float>> logits, engine;  // one row a position
  };
  std::string notes;
  double bound = 0, bound_engine = 0, kv16 = 0, logit_std = 0;
  std::vector<std::pair<std::string, double>> sensitivity;
  std::vector<Sequence> sequences;
};

// The fixtures of tests/data/archs whose architecture is in the list.
std::vector<std::string> fixture_names();
std::string test_name(std::string fixture);  // as GoogleTest allows it
std::string fixture_bytes(const std::string& name);
Expected expected(const std::string& name);

// Collects warnings.
struct Listener {
  std::string heard;
  int lines = 0;
  Log log{[this](Level level, const std::string& text) {
    if (level != Level::kWarning) return;
    heard += text + "\n";
    ++lines;
  }};
};

// Opens bytes that stay where they are; throws Error.
gguf::Reader open(const std::string& bytes);
// What check_model says of the bytes: the error's message, or "".
std::string complaint(const std::string& bytes);

// Gives a key or tensor another name of the same length.
void rename(std::string& bytes, std::string_view name, std::string_view other);
// Gives it a name that nothing asks for: to the model it is gone.
void take_away(std::string& bytes, std::string_view name);
// Overwrites a number in place, bits and all.
void set_u32(std::string& bytes, std::string_view key, uint32_t value);
void set_f32(std::string& bytes, std::string_view key, float value);

std::unique_ptr<ops::Executor> reference(ops::Activations activations);
std::unique_ptr<ops::Executor> cpu(int threads, ops::Activations activations);

// A model with its executor and a KV cache for a few sequences of up to 128 positions.
class Bench {
 public:
  // The next tokens of a sequence.
  struct Chunk {
    int sequence = 0;
    std::vector<int32_t> ids;
  };

  Bench(gguf::Reader file, int64_t context, std::unique_ptr<ops::Executor> op);

  // One forward pass over the chunks, in this order -> the logits of every row, [tokens][vocab].
  std::vector<std::vector<float>> run(const std::vector<Chunk>& chunks);

  const Model& model() const { return model_; }

 private:
  static constexpr int kSequences = 4, kPagesEach = 2, kMostRows = 160;

  std::unique_ptr<ops::Executor> op_;
  Model model_;
  std::vector<std::vector<uint16_t>> cache_;  // keys and values of each layer
  std::vector<ops::KvLayer> layers_;
  std::vector<int32_t> pages_[kSequences];
  int position_[kSequences] = {};
};

// The logits at the sequence's positions when it is fed in pieces: `first` tokens, then `rest` at a time.
std::vector<std::vector<float>> logits_in_pieces(const std::string& bytes, const Expected::Sequence& sequence,
                                                 std::unique_ptr<ops::Executor> op, size_t first,
                                                 size_t rest);

double largest_difference(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b);
bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b);

}  // namespace juno::model::testing
