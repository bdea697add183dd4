// SPDX-License-Identifier: Apache-2.0
// Hands an architecture its weights by name, checked against the shape that the configuration implies.
// What is missing or misshapen is collected, so that one error names all of it.
#pragma once
#include <memory>
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

// Device memory for what does not stay in the file as it is, released together.
class DeviceMemory {
 public:
  explicit DeviceMemory(ops::Device& device) : layers_{&device} {}
  // One device a layer; what comes before and after the layers lies beside the first and the last.
  explicit DeviceMemory(std::vector<ops::Device*> layers) : layers_(std::move(layers)) {}
  DeviceMemory(DeviceMemory&&) noexcept = default;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  // Where a layer's weights lie; -1: those of the end.
  ops::Device& device(int layer) const;
  Tensor keep(const std::vector<float>& values, int layer);  // a copy as [1, values] f32

 private:
  struct Block {
    ops::Device* device;
    void* memory;
  };
  std::vector<ops::Device*> layers_;
  std::vector<Block> blocks_;
};

// Names are without ".weight" and ".bias"; "{}" in a name is the layer (-1: the name has none). A tensor that
// is required and absent, or has another shape than asked for, is noted and handed out empty: the
// architecture goes on, and whoever made the Loader raises the faults.
class Loader {
 public:
  // Without memory nothing is uploaded and no weight is read: that is the pass which checks.
  Loader(const gguf::Reader& file, const Config& config, Keys& keys, Faults& faults, DeviceMemory* memory)
      : file_(file), config_(config), keys_(keys), faults_(faults), memory_(memory) {}

  const Config& config() const { return config_; }
  Keys& keys() { return keys_; }

  bool has(std::string_view name, int layer = -1) const;
  Tensor matrix(std::string_view name, int layer, const Shape& shape);  // as in the file, uploaded
  std::vector<float> values(std::string_view name,
                            int64_t count);  // on the host; ones in the pass that checks
  ops::Norm norm(std::string_view name, int layer, int64_t size);  // RMS norm with the file's epsilon
  ops::Linear linear(std::string_view name, int layer, const Shape& shape, ops::Split split,
                     Bias bias = Bias::kOptional);
  ops::Linear linear(std::string_view name, int layer, const Part& part, int64_t in, ops::Split split);
  Tensor embedding();                             // token_embd, where the first layer lies
  ops::Linear head(const Tensor& embedding);      // output.weight, or the embedding
  ops::Experts experts(int layer, ops::Act act);  // ffn_{gate,up,down}_exps

  void fault(std::string_view name, std::string sentence) { faults_.add(name, std::move(sentence)); }
  // Tensors of the file that nobody asked for.
  std::vector<std::string> unused() const;

 private:
  const gguf::TensorInfo* find(const std::string& name, const Shape& shape);
  Tensor upload(const gguf::TensorInfo& info, int layer, const Part& rows);
  Tensor vector(const std::string& name, int layer, int64_t size);

  const gguf::Reader& file_;
  const Config& config_;
  Keys& keys_;
  Faults& faults_;
  DeviceMemory* memory_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace juno::model
