// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <array>

#include "gguf/text.h"

namespace juno::model {
namespace {

const Entry& find_architecture(const gguf::Reader& file) {
  const std::string name = read_architecture(file);
  std::vector<std::string> known;
  for (const Entry& entry : architectures()) {
    if (entry.name == name) return entry;
    known.emplace_back(entry.name);
  }
  fail(Code::kBadData,
       "[model] {}: the architecture \"{}\" (general.architecture) is not known; known are {}", file.name(),
       gguf::shown(name), listed(known));
}

// Keys of these namespaces are other rooms' business, or remarks.
bool foreign(std::string_view key) {
  constexpr std::array<std::string_view, 4> kNamespaces{"general.", "tokenizer.", "split.", "quantize."};
  for (std::string_view prefix : kNamespaces) {
    if (key.starts_with(prefix)) return true;
  }
  return false;
}

void warn_of_unused(const gguf::Reader& file, const Keys& keys, const Loader& loader, const Log& log) {
  std::vector<std::string> names;
  for (const gguf::Metadata::Entry& entry : file.metadata().entries()) {
    if (!foreign(entry.key) && !keys.asked(entry.key)) names.push_back(gguf::shown(entry.key));
  }
  for (const std::string& tensor : loader.unused()) names.push_back(gguf::shown(tensor));
  if (!names.empty()) {
    log.warn("[model] {} holds keys and tensors that this architecture does not use: {}", file.name(),
             listed(names));
  }
}

// A remark about the weights; nothing follows from it.
void warn_of_file_type(const gguf::Reader& file, const Log& log) {
  constexpr int kKnownFileTypes = 64, kGuessed = 1024;
  const gguf::Value* value = file.metadata().find("general.file_type");
  if (!value) return;
  const auto type = value->as<int64_t>();
  if (!type || *type < 0 || (*type & ~kGuessed) >= kKnownFileTypes) {
    log.warn("[model] {}: general.file_type is {}, which is no known type; it is ignored", file.name(),
             gguf::shown(*value));
  }
}

// One pass over the file. Without memory it only checks.
std::unique_ptr<Architecture> make(const gguf::Reader& file, const Config& config, DeviceMemory* memory,
                                   Keys& keys, Faults& faults, const Log& log) {
  Loader loader(file, config, keys, faults, memory);
  auto made = find_architecture(file).make(loader);
  faults.raise(file.name());
  if (!memory) warn_of_unused(file, keys, loader, log);
  return made;
}

// What follows the layers.
Tensor last(const Architecture& model, Ops& op, const Batch& batch, Tensor x) {
  const Tensor h = model.hidden(op, batch, x);  // [outputs, dim]
  return batch.hidden ? h : model.logits(op, h);
}

Config check(const gguf::Reader& file, int64_t context, const Log& log) {
  Faults faults;
  Keys keys(file.metadata(), find_architecture(file).name, faults);
  const Config config = read_config(file, keys, context, log);
  faults.raise(file.name());
  warn_of_file_type(file, log);
  make(file, config, nullptr, keys, faults, log);
  return config;
}

}  // namespace

Result<Config> check_model(const gguf::Reader& file, int64_t context, const Log& log) {
  return guard([&] { return check(file, context, log); });
}

Result<Model> load_model(gguf::Reader file, int64_t context, ops::Device& device, const Log& log) {
  return load_model(std::move(file), context, std::vector<ops::Device*>{&device}, log);
}

Result<Model> load_model(gguf::Reader file, int64_t context, std::vector<ops::Device*> layers,
                         const Log& log) {
  return guard([&] {
    Config config = check(file, context, log);
    Faults faults;
    Keys keys(file.metadata(), config.architecture, faults);
    for (ops::Device* device : layers) device->copies_later(file.forgetter());
    DeviceMemory memory(std::move(layers));
    auto architecture = make(file, config, &memory, keys, faults, log);
    return Model{std::move(file), std::move(config), std::move(memory), std::move(architecture)};
  });
}

Tensor forward(const Architecture& model, Ops& op, const Batch& batch) {
  op.begin(batch);
  Tensor x = model.embed(op, batch);  // [tokens, dim]
  for (int i = 0; i < int(batch.layers.size()); ++i) x = op.end_layer(i, model.layer(op, batch, i, x));
  return last(model, op, batch, x);
}

Tensor forward(const Model& model, const Stage& stage, const Batch& batch) {
  const Architecture& a = *model.architecture;
  ops::Executor& op = *stage.ops;
  op.begin(batch);
  Tensor x = stage.first == 0 ? a.embed(op, batch) : op.enter(batch.tokens.cols(), model.config.dim);
  for (int i = stage.first; i < stage.last; ++i) x = op.end_layer(i, a.layer(op, batch, i, x));
  return stage.last == model.config.layers ? last(a, op, batch, x) : x;
}

}  // namespace juno::model
