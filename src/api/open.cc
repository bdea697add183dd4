// SPDX-License-Identifier: Apache-2.0
#include "api/open.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "api/named.h"
#include "base/cpu_limits.h"
#include "gguf/text.h"
#include "gguf/types.h"

namespace juno::api {
namespace {

constexpr int64_t kDefaultContext = 4096;

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
            .activations = options.activations};
  for (const model::Stage& stage : parts.stages) {
    const char* joint = info.backend.empty() ? "" : "+";
    info.backend += joint + std::string(stage.ops->backend());
    info.isa += joint + std::string(stage.ops->isa());
    info.threads = std::max(info.threads, stage.ops->threads());
    const size_t at = info.devices.size();
    info.devices.push_back({std::string(stage.ops->backend()), stage.ops->device().info().name, stage.first,
                            stage.last, parts.estimates[at].total()});
  }
  if (const gguf::Value* name = file.metadata().find("general.name"))
    info.name = name->as<std::string>().value_or("");
  for (const gguf::TensorInfo& t : file.tensors()) {
    info.parameters += static_cast<int64_t>(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]);
  }
  return info;
}

// Of the host's memory. Weights that are laid out anew are counted once: their pages of the file are given
// up when others want them.
uint64_t host_need(const gguf::Reader& file, const Placement& placement) {
  uint64_t copied = 0, weights = 0, bytes = 0;
  for (size_t i = 0; i < placement.stages.size(); ++i) {
    const model::Stage& stage = placement.stages[i];
    if (stage.ops->device().memory()) continue;
    const Estimate& e = placement.estimates[i];
    copied += e.weights;
    bytes += e.kv + e.work;
    weights += weight_bytes(file, stage.first, stage.last);
  }
  return bytes + std::max(weights, copied);
}

void check_host(const gguf::Reader& file, uint64_t bytes, const Capacity& capacity, const Log& log) {
  log.info("[api] {} is to take {} bytes of memory; it may take {}", file.name(), bytes, capacity.host_bytes);
  if (bytes > capacity.host_bytes)
    fail(Code::kDevice,
         "[api] {} needs {} bytes of memory with {} sequences, and {} are free; a smaller context or fewer "
         "sequences need less",
         file.name(), bytes, capacity.sequences, capacity.host_bytes);
}

// A guess is a token, so the two must mean the same by it.
void check_vocabulary(const tokenizer::Tokenizer& draft, const tokenizer::Tokenizer& model,
                      const std::string& name) {
  if (draft.size() != model.size())
    fail(Code::kBadData, "[api] {} cannot guess for this model: it has {} tokens and the model {}", name,
         draft.size(), model.size());
  for (int32_t id = 0; id < model.size(); ++id)
    if (draft.piece(id) != model.piece(id) || draft.is_control(id) != model.is_control(id))
      fail(Code::kBadData, "[api] {} cannot guess for this model: token {} is \"{}\" there and \"{}\" here",
           name, id, gguf::shown(draft.piece(id)), gguf::shown(model.piece(id)));
}

// Opens the draft model as its own engine, for contexts as long as the model's.
std::unique_ptr<Opened> open_draft(SessionOptions options, Capacity capacity, int64_t context) {
  options.model_path = std::exchange(options.draft_model, "");
  options.model_bytes = {};
  options.context = context;
  options.gpu_layers = "";
  options.gpu_split = {};
  options.chat_template = "";
  options.prompt_lookup = 0;
  capacity.positions = context * capacity.sequences;
  capacity.outputs = 0;
  return std::make_unique<Opened>(open_parts(options, capacity));
}

}  // namespace

Snapshot Opened::snapshot() const {
  Snapshot sum = stages.front().ops->snapshot();
  for (size_t i = 1; i < stages.size(); ++i) sum = sum.plus(stages[i].ops->snapshot());
  return sum;
}

gguf::Reader open_file(const SessionOptions& o) {
  if (o.model_bytes.empty()) return take(gguf::Reader::open(o.model_path, o.log));
  return take(gguf::Reader::open_memory(o.model_bytes, o.model_path, o.log));
}

int64_t context_of(const model::Config& config, const SessionOptions& options) {
  return options.context > 0 ? options.context : std::min<int64_t>(config.trained_context, kDefaultContext);
}

std::string pooling_of(const gguf::Reader& file) {
  constexpr std::array<const char*, 4> kNames{"", "mean", "cls", "last"};
  const auto architecture = file.metadata().get<std::string_view>("general.architecture");
  if (!architecture) return "";
  const auto type = file.metadata().get<uint32_t>(std::string(*architecture) + ".pooling_type");
  return type && *type < kNames.size() ? kNames[*type] : "";
}

Opened open_parts(const SessionOptions& given, const Capacity& room) {
  SessionOptions options = given;
  Capacity capacity = room;
  if (options.chunk < 0) fail(Code::kUsage, "[api] a chunk of {} tokens: at least 1", options.chunk);
  Opened parts;
  gguf::Reader file = open_file(options);
  const model::Config config = take(model::check_model(file, std::max<int64_t>(options.context, 0), Log{}));
  const int64_t context = context_of(config, options);
  const Log log = named(options.log, file.name());
  parts.tokenizer = std::make_unique<tokenizer::Tokenizer>(
      take(named(tokenizer::Tokenizer::load(file.metadata(), log), file.name())));
  if (!options.draft_model.empty()) {
    const int allowed = cpu_limits().threads();  // one pool: they take turns
    if (!options.pool)
      options.pool = std::make_shared<ThreadPool>(options.threads > 0 ? options.threads : allowed, allowed);
    parts.draft = open_draft(options, capacity, context);
    check_vocabulary(*parts.draft->tokenizer, *parts.tokenizer, options.draft_model);
    if (capacity.host_bytes > 0) capacity.host_bytes -= parts.draft->info.host_bytes;
  }
  Placement placement = place(file, config, context, options, capacity);
  const uint64_t host_bytes = host_need(file, placement);
  if (capacity.host_bytes > 0) check_host(file, host_bytes, capacity, options.log);
  parts.executors = std::move(placement.executors);
  parts.stages = std::move(placement.stages);
  parts.estimates = std::move(placement.estimates);
  std::vector<ops::Device*> devices;  // of each layer
  for (const model::Stage& s : parts.stages)
    devices.insert(devices.end(), static_cast<size_t>(s.last - s.first), &s.ops->device());
  parts.model = std::make_unique<model::Model>(
      take(model::load_model(std::move(file), context, std::move(devices), options.log)));
  take(named(parts.tokenizer->fit_embedding(parts.model->config.vocab, log), parts.model->file.name()));
  parts.prompt = std::make_unique<Prompt>(parts.model->file, *parts.tokenizer, options.chat_template, log);
  parts.chunk = placement.how.chunk;
  placement.how.vocab = parts.tokenizer->size();
  if (parts.draft) placement.how.draft = parts.draft->engine.get();
  parts.engine = take(engine::Engine::make(*parts.model, parts.stages, placement.how));
  parts.info = describe(parts, options);
  parts.info.host_bytes = host_bytes + (parts.draft ? parts.draft->info.host_bytes : 0);
  return parts;
}

}  // namespace juno::api
