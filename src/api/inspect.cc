// SPDX-License-Identifier: Apache-2.0
#include "api/inspect.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "gguf/reader.h"
#include "model/model.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

// JSON holds text, not bytes: what is not UTF-8 becomes U+FFFD.
std::string text_of(std::string_view bytes) {
  const std::string quoted = Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

Json json_of(const gguf::Value& value, size_t longest) {
  if (value.type == gguf::ValueType::kArray) {
    Json items = Json::array();
    for (const gguf::Value& item : value) {
      if (items.size() == longest) break;
      items.push_back(json_of(item, longest));
    }
    if (value.count <= longest) return items;
    return {{"type", gguf::name_of(value.item)}, {"count", value.count}, {"first", items}};
  }
  if (value.type == gguf::ValueType::kBool) return *value.as<bool>();
  if (auto text = value.as<std::string_view>()) return text_of(*text);
  if (auto n = value.as<int64_t>()) return *n;
  if (auto n = value.as<uint64_t>()) return *n;
  return value.as<double>().value_or(value.as<float>().value_or(0));
}

uint64_t elements(const gguf::TensorInfo& t) { return t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]; }

Json tensors_of(const gguf::Reader& file) {
  Json list = Json::array();
  for (const gguf::TensorInfo& t : file.tensors()) {
    Json shape = Json::array();
    for (uint32_t d = t.n_dims; d-- > 0;) shape.push_back(t.dims[d]);
    list.push_back(
        {{"name", t.name}, {"type", gguf::type_name(t.type)}, {"shape", shape}, {"bytes", t.bytes}});
  }
  return list;
}

Json types_of(const gguf::Reader& file) {
  struct Sum {
    uint64_t tensors = 0, parameters = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const gguf::TensorInfo& t : file.tensors()) {
    Sum& s = sums[gguf::type_name(t.type)];
    s.tensors += 1;
    s.parameters += elements(t);
    s.bytes += t.bytes;
  }
  Json list = Json::array();
  for (const auto& [type, s] : sums)
    list.push_back(
        {{"type", type}, {"tensors", s.tensors}, {"parameters", s.parameters}, {"bytes", s.bytes}});
  std::stable_sort(list.begin(), list.end(), [](const Json& a, const Json& b) {
    return a["bytes"].get<uint64_t>() > b["bytes"].get<uint64_t>();
  });
  return list;
}

// Keys and values are f16, in pages of 64 positions.
Json memory_of(const gguf::Reader& file, const model::Config& config) {
  const ops::KvShape kv = config.kv_shape();
  const uint64_t per_token = uint64_t(config.layers) * kv.kv_heads * (kv.key_dim + kv.value_dim) * 2;
  Json contexts = Json::array();
  for (int64_t context = 1024;; context *= 4) {
    context = std::min(context, config.trained_context);
    const uint64_t pages = (uint64_t(context) + ops::kPagePositions - 1) / ops::kPagePositions;
    const uint64_t bytes = pages * ops::kPagePositions * per_token;
    contexts.push_back({{"context", context}, {"kv", bytes}, {"total", bytes + file.tensor_bytes()}});
    if (context == config.trained_context) break;
  }
  return {{"weights", file.tensor_bytes()}, {"kv_bytes_per_token", per_token}, {"contexts", contexts}};
}

}  // namespace

Result<Json> inspect(const std::string& path, size_t longest, const Log& log) {
  return guard([&]() -> Json {
    const gguf::Reader file = take(gguf::Reader::open(path, log));
    Json metadata = Json::object();
    for (const auto& entry : file.metadata().entries())
      metadata[text_of(entry.key)] = json_of(entry.value, longest);
    uint64_t parameters = 0;
    for (const gguf::TensorInfo& t : file.tensors()) parameters += elements(t);
    const auto config = model::check_model(file, 0, Log{});
    return {{"file", file.name()},
            {"version", file.version()},
            {"parts", file.parts()},
            {"bytes", file.file_bytes()},
            {"alignment", file.alignment()},
            {"parameters", parameters},
            {"metadata", metadata},
            {"tensors", tensors_of(file)},
            {"types", types_of(file)},
            {"memory", config ? memory_of(file, *config) : Json{{"unknown", config.error().message}}}};
  });
}

}  // namespace juno::api
