// SPDX-License-Identifier: Apache-2.0
#include "model/loader.h"

#include "gguf/reader.h"
#include "quant/format_info.h"

namespace juno::model {
namespace {

std::string full_name(std::string_view name, int layer, std::string_view suffix) {
  std::string text(name);
  if (const size_t place = text.find("{}"); place != std::string::npos)
    text.replace(place, 2, std::to_string(layer));
  return text.append(suffix);
}

Shape shape_of(const gguf::TensorInfo& info) {
  return {.planes = int64_t(info.dims[2]), .rows = int64_t(info.dims[1]), .cols = int64_t(info.dims[0])};
}

// In the order that GGUF tools show: a row's length first.
std::string shown(const Shape& s) {
  if (s.planes > 1) return fmt::format("[{}, {}, {}]", s.cols, s.rows, s.planes);
  return s.rows > 1 ? fmt::format("[{}, {}]", s.cols, s.rows) : fmt::format("[{}]", s.cols);
}

std::string known_formats() {
  std::vector<std::string> names;
  for (const quant::FormatInfo& format : quant::formats()) names.emplace_back(format.name);
  return listed(names);
}

std::vector<float> widened(const gguf::TensorInfo& info) {
  std::vector<float> values(info.dims[0]);
  quant::find_format(info.type)->dequantise_row(info.data, int64_t(values.size()), values.data());
  return values;
}

}  // namespace

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  layers_.swap(other.layers_);
  blocks_.swap(other.blocks_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  for (const Block& block : blocks_) block.device->release(block.memory);
}

ops::Device& DeviceMemory::device(int layer) const {
  return *(layer < 0 || size_t(layer) >= layers_.size() ? layers_.back() : layers_[layer]);
}

Tensor DeviceMemory::keep(const std::vector<float>& values, int layer) {
  blocks_.reserve(blocks_.size() + 1);
  ops::Device& on = device(layer);
  blocks_.push_back({&on, take(on.allocate(values.size() * sizeof(float)))});
  const Tensor kept{blocks_.back().memory, DType::kF32, {.rows = 1, .cols = int64_t(values.size())}};
  on.write(kept, values.data());
  return kept;
}

bool Loader::has(std::string_view name, int layer) const {
  return file_.tensor(full_name(name, layer, ".weight")) != nullptr;
}

const gguf::TensorInfo* Loader::find(const std::string& name, const Shape& shape) {
  const gguf::TensorInfo* info = file_.tensor(name);
  if (!info) {
    fault(name, fmt::format("the tensor {} is missing", name));
    return nullptr;
  }
  used_.insert(name);
  if (shape_of(*info) != shape || info->dims[3] != 1) {
    fault(name, fmt::format("{} has the shape {}, not {} as the keys imply", name, shown(shape_of(*info)),
                            shown(shape)));
    return nullptr;
  }
  if (!quant::find_format(info->type)) {
    fault(name, fmt::format("{} has the type {}; known are {}", name, gguf::type_name(info->type),
                            known_formats()));
    return nullptr;
  }
  return info;
}

Tensor Loader::upload(const gguf::TensorInfo& info, int layer, const Part& rows) {
  if (!memory_) return {};
  const int64_t row_bytes = quant::find_format(info.type)->row_bytes(int64_t(info.dims[0]));
  Shape shape = shape_of(info);
  shape.rows = rows.count;
  // Devices only read what they upload; Tensor has no other pointer.
  uint8_t* data = const_cast<uint8_t*>(info.data) + rows.first * row_bytes;
  const Tensor uploaded = take(memory_->device(layer).upload({data, DType(info.type), shape}));
  if (uploaded.data != data)
    file_.forgetter()(data, static_cast<uint64_t>(row_bytes * shape.rows * shape.planes));
  return uploaded;
}

Tensor Loader::vector(const std::string& name, int layer, int64_t size) {
  const gguf::TensorInfo* info = find(name, {.rows = 1, .cols = size});
  return info && memory_ ? memory_->keep(widened(*info), layer) : Tensor{};
}

Tensor Loader::matrix(std::string_view name, int layer, const Shape& shape) {
  const gguf::TensorInfo* info = find(full_name(name, layer, ".weight"), shape);
  return info ? upload(*info, layer, {0, shape.rows, shape.rows}) : Tensor{};
}

std::vector<float> Loader::values(std::string_view name, int64_t count) {
  const gguf::TensorInfo* info = find(full_name(name, -1, ".weight"), {.rows = 1, .cols = count});
  return info && memory_ ? widened(*info) : std::vector<float>(count, 1.0f);
}

ops::Norm Loader::norm(std::string_view name, int layer, int64_t size) {
  return {.weight = vector(full_name(name, layer, ".weight"), layer, size), .eps = config_.norm_eps};
}

ops::Linear Loader::linear(std::string_view name, int layer, const Shape& shape, ops::Split split,
                           Bias bias) {
  ops::Linear w{.weight = matrix(name, layer, shape), .split = split};
  const std::string bias_name = full_name(name, layer, ".bias");
  if (bias == Bias::kRequired || (bias == Bias::kOptional && file_.tensor(bias_name))) {
    w.bias = vector(bias_name, layer, shape.rows);
  }
  return w;
}

ops::Linear Loader::linear(std::string_view name, int layer, const Part& part, int64_t in, ops::Split split) {
  const gguf::TensorInfo* info = find(full_name(name, layer, ".weight"), {.rows = part.of, .cols = in});
  return {.weight = info ? upload(*info, layer, part) : Tensor{}, .split = split};
}

Tensor Loader::embedding() {
  const gguf::TensorInfo* info = find("token_embd.weight", {.rows = config_.vocab, .cols = config_.dim});
  return info ? upload(*info, 0, {0, config_.vocab, config_.vocab}) : Tensor{};
}

ops::Linear Loader::head(const Tensor& embedding) {
  const gguf::TensorInfo* own = file_.tensor("output.weight");
  if (!own) {
    const bool beside = !memory_ || &memory_->device(0) == &memory_->device(-1);
    const Shape shape{.rows = config_.vocab, .cols = config_.dim};
    return {.weight = beside ? embedding : matrix("token_embd", -1, shape), .split = ops::Split::kOut};
  }
  if (own->dims[1] != uint64_t(config_.vocab)) {
    fault(own->name, fmt::format("output.weight has {} rows, but token_embd.weight has {}", own->dims[1],
                                 config_.vocab));
  }
  return linear("output", -1, {.rows = config_.vocab, .cols = config_.dim}, ops::Split::kOut);
}

ops::Experts Loader::experts(int layer, ops::Act act) {
  const Config& c = config_;
  const Shape in{.planes = c.experts, .rows = c.expert_ffn, .cols = c.dim};
  const Shape out{.planes = c.experts, .rows = c.dim, .cols = c.expert_ffn};
  return {.gate = matrix("blk.{}.ffn_gate_exps", layer, in),
          .up = matrix("blk.{}.ffn_up_exps", layer, in),
          .down = matrix("blk.{}.ffn_down_exps", layer, out),
          .act = act};
}

std::vector<std::string> Loader::unused() const {
  std::vector<std::string> names;
  for (const gguf::TensorInfo& info : file_.tensors()) {
    if (!used_.contains(info.name)) names.emplace_back(info.name);
  }
  return names;
}

}  // namespace juno::model
