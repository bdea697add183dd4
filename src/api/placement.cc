// SPDX-License-Identifier: Apache-2.0
// The card takes the last layers and the head: what stays on the CPU comes first, with the embedding.
#include "api/placement.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <list>
#include <nlohmann/json.hpp>
#include <numeric>

#include "api/host.h"
#include "backend/backends.h"
#include "ops/ledger_device.h"

namespace juno::api {
namespace {

using Stages = std::vector<model::Stage>;

constexpr int kChunk = 256, kCardChunk = 512;  // tokens of a step, on a CPU and where a card takes part
constexpr int kBeside = 8;  // on a CPU, where a step of 64 takes six times as long as one of a few decodes

ops::Activations profile(const std::string& name) {
  if (name == "int8") return ops::Activations::kInt8;
  if (name == "int8x2") return ops::Activations::kInt8x2;
  fail(Code::kUsage, "[api] activations \"{}\": known are int8 and int8x2", name);
}

Result<std::unique_ptr<ops::Executor>> open_one(const std::string& name, const SessionOptions& o) {
  return open_backend(name, {.threads = o.threads,
                             .isa = o.isa,
                             .activations = profile(o.activations),
                             .pool = o.pool,
                             .turn_weights = o.repack,
                             .log = o.log});
}

struct Card {
  std::string name;
  std::unique_ptr<ops::Executor> ops;
};

// The first card that can be used; none where none can, with the reasons.
Card usable_card(const SessionOptions& o, std::string& why) {
  for (const Backend& backend : backends()) {
    if (!backend.card || !backend.open) continue;
    auto opened = open_one(std::string(backend.name), o);
    if (opened) return {std::string(backend.name), std::move(*opened)};
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", backend.name, opened.error().message);
  }
  if (why.empty()) why = "no GPU is built into this program";
  return {};
}

std::string shown(ops::Executor& op) {
  const ops::DeviceInfo info = op.device().info();
  if (info.name.empty()) return op.backend() == "cpu" ? "the CPU" : std::string(op.backend());
  return fmt::format("{}:{} ({})", op.backend(), info.index, info.name);
}

std::string gigabytes(uint64_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9); }

class Placer {
 public:
  Placer(gguf::Reader& file, const model::Config& config, int64_t context, const SessionOptions& options,
         const Capacity& capacity)
      : file_(file),
        options_(options),
        capacity_(capacity),
        context_(context),
        layers_(config.layers),
        shape_(config.kv_shape()) {}

  Placement run() {
    const std::string card = card_name();
    if (card.empty()) return on_one("cpu");
    if (options_.gpu_layers.empty() && options_.gpu_split.empty() && !is_card(card)) return on_one(card);
    open_cards(card);
    choose();
    say();
    placement_.how = how(placement_.stages);
    std::erase_if(placement_.executors, [&](const auto& op) {  // a card that got no layer
      return std::ranges::none_of(placement_.stages,
                                  [&](const model::Stage& s) { return s.ops == op.get(); });
    });
    return std::move(placement_);
  }

 private:
  static bool is_card(std::string_view name) {
    const std::string_view kind = name.substr(0, name.find(':'));
    return std::ranges::any_of(backends(), [&](const Backend& b) { return b.name == kind && b.card; });
  }

  std::string card_name() {
    if (options_.backend == "cpu" || options_.gpu_layers == "0") return "";
    if (options_.backend != "auto") return options_.backend;
    std::string why;
    Card card = usable_card(options_, why);
    if (card.name.empty()) options_.log.notice("[api] on the CPU: {}", why);
    first_ = std::move(card.ops);
    return card.name;
  }

  engine::EngineOptions how(const Stages& stages) const {
    const bool card = std::ranges::any_of(
        stages, [](const model::Stage& s) { return s.ops->device().memory().has_value(); });
    const int chunk = options_.chunk > 0 ? options_.chunk : card ? kCardChunk : kChunk;
    const int sequences = capacity_.sequences;
    return {.context = context_,
            .chunk = std::max(static_cast<int>(std::min<int64_t>(chunk, context_)), sequences),
            .sequences = sequences,
            .vocab = 0,
            .positions = positions(stages),
            .outputs = capacity_.outputs,
            .beside = card ? 0 : kBeside,
            .prompt_lookup = options_.prompt_lookup,
            .draft_tokens = options_.draft_model.empty() ? 0 : kDraftTokens};
  }

  // Of the cache: where nobody says how many, it takes at most half of what the weights leave free.
  int64_t positions(const Stages& stages) const {
    if (capacity_.positions > 0) return capacity_.positions;
    int64_t most = context_ * capacity_.sequences;
    if (capacity_.sequences == 1) return most;
    for (const model::Stage& s : stages) {
      const auto card = s.ops->device().memory();
      const uint64_t free = card                       ? card->free
                            : capacity_.host_bytes > 0 ? capacity_.host_bytes
                                                       : host_memory().usable();
      const uint64_t weights = weight_bytes(file_, s.first, s.last);
      const uint64_t room = free > weights ? (free - weights) / 2 : 0;
      const std::vector<ops::KvShape> layers(static_cast<size_t>(s.last - s.first), shape_);
      const uint64_t pages = room / engine::KvPool::bytes_per_page(layers);
      most = std::min(most, static_cast<int64_t>(pages) * ops::kPagePositions);
    }
    return std::max(most, context_);
  }

  Placement on_one(const std::string& name) {
    placement_.executors.push_back(take(open_one(name, options_)));
    placement_.stages = {{placement_.executors.back().get(), 0, layers_}};
    placement_.how = how(placement_.stages);
    placement_.estimates = estimate(file_, placement_.stages, placement_.how);
    return std::move(placement_);
  }

  // "cuda" with two shares is cuda:0 and cuda:1.
  void open_cards(const std::string& card) {
    if (options_.gpu_split.size() > 1 && card.find(':') != card.npos)
      fail(Code::kUsage, "[api] {} is one card; layers are split over several", card);
    const bool several = options_.gpu_split.size() > 1;
    for (size_t i = 0; i < std::max<size_t>(1, options_.gpu_split.size()); ++i) {
      if (i == 0 && first_) placement_.executors.push_back(std::move(first_));
      else
        placement_.executors.push_back(
            take(open_one(several ? fmt::format("{}:{}", card, i) : card, options_)));
    }
    cards_ = placement_.executors.size();
  }

  // `count` layers on the cards, by their shares; those before on the CPU.
  Stages spread(int count) {
    Stages stages;
    if (count < layers_) stages.push_back({&cpu(), 0, layers_ - count});
    double sum = std::accumulate(options_.gpu_split.begin(), options_.gpu_split.end(), 0.0), share = 0;
    int first = layers_ - count;
    for (size_t i = 0; i < cards_; ++i) {
      share += cards_ > 1 ? options_.gpu_split[i] : 1;
      const int last = i + 1 == cards_
                           ? layers_
                           : layers_ - count + static_cast<int>(count * share / (sum > 0 ? sum : 1) + 0.5);
      if (last > first) stages.push_back({placement_.executors[i].get(), first, last});
      first = std::max(first, last);
    }
    return stages;
  }

  ops::Executor& cpu() {
    if (placement_.executors.size() == cards_)
      placement_.executors.push_back(take(open_one("cpu", options_)));
    return *placement_.executors.back();
  }

  // What a card lacks for these stages; 0: they fit.
  uint64_t missing(const Stages& stages, const std::vector<Estimate>& sizes) const {
    uint64_t most = 0;
    for (size_t i = 0; i < stages.size(); ++i) {
      const auto memory = stages[i].ops->device().memory();
      if (!memory) continue;
      const uint64_t free = memory->free > kCardSpare ? memory->free - kCardSpare : 0;
      if (sizes[i].total() > free) most = std::max(most, sizes[i].total() - free);
    }
    return most;
  }

  bool try_layers(int count) {
    Stages stages = spread(count);
    std::vector<Estimate> sizes = estimate(file_, stages, how(stages));
    const uint64_t lacks = missing(stages, sizes);
    if (lacks == 0 || placement_.stages.empty()) {
      placement_.stages = std::move(stages);
      placement_.estimates = std::move(sizes);
    }
    return lacks == 0;
  }

  void choose() {
    const std::string& wanted = options_.gpu_layers;
    if (!wanted.empty() && wanted != "auto") {
      if (!try_layers(number(wanted))) refuse();
      return;
    }
    if (try_layers(layers_)) return;
    int fits = 0, over = layers_;  // `fits` layers fit, `over` do not
    while (over - fits > 1) {
      const int middle = (fits + over) / 2;
      (try_layers(middle) ? fits : over) = middle;
    }
    if (fits > 0) return;  // the last that fitted is kept
    if (options_.backend != "auto") {
      placement_.stages.clear();
      try_layers(1);
      refuse();
    }
    ops::Executor& card = *placement_.executors.front();
    none_fits_ = fmt::format("no layer fits on {}, of which {} are free", shown(card),
                             gigabytes(card.device().memory()->free));
    try_layers(0);
  }

  int number(const std::string& text) const {
    if (text == "all") return layers_;
    int count = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 0)
      fail(Code::kUsage, "[api] \"{}\" layers: a number, all or auto", text);
    return std::min(count, layers_);
  }

  [[noreturn]] void refuse() const {
    for (size_t i = 0; i < placement_.stages.size(); ++i) {
      const model::Stage& s = placement_.stages[i];
      const auto memory = s.ops->device().memory();
      if (!memory || placement_.estimates[i].total() + kCardSpare <= memory->free) continue;
      const Estimate& e = placement_.estimates[i];
      fail(Code::kDevice,
           "[api] {}: layers {} to {} need {} bytes on {} ({} of weights, {} of keys and values, {} to work "
           "in), and {} besides; {} are free",
           file_.name(), s.first, s.last - 1, e.total(), shown(*s.ops), e.weights, e.kv, e.work, kCardSpare,
           memory->free);
    }
    fail(Code::kDevice, "[api] {}: the layers do not fit", file_.name());
  }

  void say() const {
    if (!none_fits_.empty()) return options_.log.notice("[api] on the CPU: {}", none_fits_);
    std::vector<std::string> parts;
    for (size_t i = 0; i < placement_.stages.size(); ++i) {
      const model::Stage& s = placement_.stages[i];
      std::string part = s.last - s.first == layers_ ? fmt::format("all {} layers", layers_)
                                                     : fmt::format("layers {} to {}", s.first, s.last - 1);
      part += fmt::format(" on {}", shown(*s.ops));
      if (const auto memory = s.ops->device().memory())
        part += fmt::format(", {} of {} free", gigabytes(placement_.estimates[i].total()),
                            gigabytes(memory->free));
      parts.push_back(std::move(part));
    }
    const bool whole = placement_.stages.size() == 1;
    const std::string line = fmt::format("[api] {}{}", fmt::join(parts, "; "),
                                         whole || !options_.gpu_layers.empty() ? "" : " (more do not fit)");
    if (options_.backend == "auto" || !whole) options_.log.notice("{}", line);
    else options_.log.info("{}", line);
  }

  gguf::Reader& file_;
  const SessionOptions& options_;
  const Capacity capacity_;
  const int64_t context_;
  const int layers_;
  const ops::KvShape shape_;              // of each layer
  std::unique_ptr<ops::Executor> first_;  // card, where it had to be opened to choose it
  size_t cards_ = 0;
  std::string none_fits_;
  Placement placement_;
};

}  // namespace

Placement place(gguf::Reader& file, const model::Config& config, int64_t context,
                const SessionOptions& options, const Capacity& capacity) {
  SessionOptions chosen = options;
  const uint64_t usable = host_memory().usable();
  if (options.repack && usable > 0 && file.tensor_bytes() > usable / 10 * 9) {
    chosen.repack = false;
    options.log.warn(
        "[api] {}: weights of {} stay in the file, for {} of memory are free: decoding is slower",
        file.name(), gigabytes(file.tensor_bytes()), gigabytes(usable));
  }
  return Placer(file, config, context, chosen, capacity).run();
}

uint64_t weight_bytes(const gguf::Reader& file, int first, int last) {
  uint64_t bytes = 0;
  for (const gguf::TensorInfo& t : file.tensors()) {
    int layer = 0;
    if (t.name.starts_with("blk.")) std::from_chars(t.name.data() + 4, t.name.data() + t.name.size(), layer);
    if (layer >= first && layer < last) bytes += t.bytes;
  }
  return bytes;
}

std::vector<Estimate> estimate(gguf::Reader& file, std::span<const model::Stage> stages,
                               const engine::EngineOptions& how) {
  std::list<ops::LedgerDevice> ledgers;
  std::vector<ops::Device*> devices;  // of each layer
  for (const model::Stage& s : stages) {
    ledgers.emplace_back(s.ops->device());
    devices.insert(devices.end(), static_cast<size_t>(s.last - s.first), &ledgers.back());
  }
  std::vector<Estimate> sizes(stages.size());
  const auto book = [&](uint64_t Estimate::*what) {  // what came since the last time
    size_t i = 0;
    for (const ops::LedgerDevice& l : ledgers) {
      sizes[i].*what = l.bytes() - sizes[i].total();
      ++i;
    }
  };
  model::Model model = take(model::load_model(std::move(file), how.context, devices, Log{}));
  book(&Estimate::weights);
  const std::vector<ops::KvShape> layers(static_cast<size_t>(model.config.layers), model.config.kv_shape());
  const auto pool = take(engine::KvPool::make(devices, layers, how.pages()));
  book(&Estimate::kv);
  const auto work = take(engine::Runner::measure(model, stages, pool->layers(), how.limits()));
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i].work = work[i];
  file = std::move(model.file);
  return sizes;
}

std::unique_ptr<ops::Executor> open_executor(const SessionOptions& options) {
  std::string why;
  if (options.backend == "auto")
    if (Card card = usable_card(options, why); card.ops) return std::move(card.ops);
  return take(open_one(options.backend == "auto" ? "cpu" : options.backend, options));
}

nlohmann::ordered_json device_json(const ops::Device& device) {
  const ops::DeviceInfo info = device.info();
  if (info.name.empty()) return nullptr;
  return {{"name", info.name},
          {"driver", info.driver},
          {"target", info.target},
          {"kernels_sha256", info.kernels_sha256},
          {"index", info.index}};
}

}  // namespace juno::api
