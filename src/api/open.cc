// SPDX-License-Identifier: Apache-2.0
#include "api/open.h"

#include <algorithm>
#include <map>

#include "api/named.h"
#include "backend/backends.h"
#include "gguf/types.h"

namespace juno::api {
namespace {

constexpr int64_t kDefaultContext = 4096;

ops::Activations profile(const std::string& name) {
  if (name == "int8") return ops::Activations::kInt8;
  if (name == "int8x2") return ops::Activations::kInt8x2;
  fail(Code::kUsage, "[api] activations \"{}\": known are int8 and int8x2", name);
}

// The type that holds most bytes of the weights.
std::string main_type(const gguf::Reader& file) {
  std::map<uint32_t, uint64_t> bytes;
  for (const gguf::TensorInfo& t : file.tensors()) bytes[t.type] += t.bytes;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "none" : gguf::type_name(most->first);
}

Info describe(const Opened& parts, const SessionOptions& options) {
  const gguf::Reader& file = parts.model->file;
  const model::Config& config = parts.model->config;
  Info info{.path = file.name(),
            .architecture = config.architecture,
            .quant = main_type(file),
            .file_bytes = file.file_bytes(),
            .weight_bytes = file.tensor_bytes(),
            .kv_bytes = parts.engine->pool().bytes(),
            .context = config.context,
            .trained_context = config.trained_context,
            .vocab = parts.tokenizer->size(),
            .layers = config.layers,
            .backend = std::string(parts.ops->backend()),
            .isa = std::string(parts.ops->isa()),
            .activations = options.activations,
            .threads = parts.ops->threads()};
  if (const gguf::Value* name = file.metadata().find("general.name"))
    info.name = name->as<std::string>().value_or("");
  for (const gguf::TensorInfo& t : file.tensors()) {
    info.parameters += static_cast<int64_t>(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]);
  }
  return info;
}

}  // namespace

gguf::Reader open_file(const SessionOptions& o) {
  if (o.model_bytes.empty()) return take(gguf::Reader::open(o.model_path, o.log));
  return take(gguf::Reader::open_memory(o.model_bytes, o.model_path, o.log));
}

Opened open_parts(const SessionOptions& options) {
  if (options.chunk < 1) fail(Code::kUsage, "[api] a chunk of {} tokens: at least 1", options.chunk);
  Opened parts;
  gguf::Reader file = open_file(options);
  const int64_t trained = take(model::check_model(file, 0, Log{})).trained_context;
  const int64_t context = options.context > 0 ? options.context : std::min(trained, kDefaultContext);
  const Log log = named(options.log, file.name());
  parts.tokenizer = std::make_unique<tokenizer::Tokenizer>(
      take(named(tokenizer::Tokenizer::load(file.metadata(), log), file.name())));
  parts.ops = take(open_backend(options.backend, {.threads = options.threads,
                                                  .isa = options.isa,
                                                  .activations = profile(options.activations),
                                                  .pool = options.pool,
                                                  .log = options.log}));
  parts.model = std::make_unique<model::Model>(
      take(model::load_model(std::move(file), context, parts.ops->device(), options.log)));
  take(named(parts.tokenizer->fit_embedding(parts.model->config.vocab, log), parts.model->file.name()));
  parts.prompt = std::make_unique<Prompt>(parts.model->file, *parts.tokenizer, options.chat_template, log);
  parts.chunk = static_cast<int>(std::min<int64_t>(options.chunk, context));
  parts.engine = take(
      engine::Engine::make(*parts.model, *parts.ops,
                           {.context = context, .chunk = parts.chunk, .vocab = parts.tokenizer->size()}));
  parts.info = describe(parts, options);
  return parts;
}

}  // namespace juno::api
