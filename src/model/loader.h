// SPDX-License-Identifier: Apache-2.0
// Hands an architecture its weights by name, checked against the shape that the configuration implies.
// What is missing or misshapen is collected, so that one error names all of it.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "ops/ops.h"

namespace juno::gguf {
class Reader;
struct TensorInfo;
}  // namespace juno::gguf

namespace juno::model {

enum class Bias : uint8_t { kNone, kOptional, kRequired };

// Some rows of a fused matrix: [first, first + count) of `of`.
struct Part {
  int64_t first = 0, count = 0, of = 0;
};

// Names are without ".weight" and ".bias"; "{}" in a name is the layer (-1: the name has none). A tensor that is
// required and absent, or has another shape than asked for, is noted and handed out empty: the architecture goes on,
// finish() fails with all of them.
class Loader {
 public:
  // Without a device nothing is uploaded and no weight is read: that is the pass which checks.
  Loader(const gguf::Reader& file, const Config& config, ops::Device* device);

  const Config& config() const { return config_; }
  std::optional<double> number(std::string_view key);   // "<arch>.<key>", any numeric type
  double required_number(std::string_view key);

  bool has(std::string_view name, int layer = -1) const;
  Tensor matrix(std::string_view name, int layer, const Shape& shape);             // as in the file, uploaded
  std::vector<float> values(std::string_view name, int64_t count);                 // on the host, widened to f32
  ops::Norm norm(std::string_view name, int layer, int64_t size);                  // RMS norm with the file's epsilon
  ops::Linear linear(std::string_view name, int layer, const Shape& shape, ops::Split split,
                     Bias bias = Bias::kOptional);
  ops::Linear linear(std::string_view name, int layer, const Part& part, int64_t in, ops::Split split);
  ops::Linear head();                                                              // output.weight, or the embedding
  ops::Experts experts(int layer, ops::Act act);                                   // ffn_{gate,up,down}_exps

  // Fails naming everything that was noted, and, per name, what the file has instead.
  void finish() const;
  // Tensors of the file that nobody asked for.
  std::vector<std::string> unused() const;

 private:
  const gguf::TensorInfo* find(const std::string& name, const Shape& shape);
  Tensor upload(const gguf::TensorInfo& info);

  const gguf::Reader& file_;
  const Config& config_;
  ops::Device* device_;
  std::set<std::string> used_;
  std::vector<std::string> faults_;
};

}  // namespace juno::model
