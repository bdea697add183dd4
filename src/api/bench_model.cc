// SPDX-License-Identifier: Apache-2.0
// Each depth has an engine of its own, filled once; every test begins where that left off.
#include "api/bench_model.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/clock.h"
#include "api/file_hash.h"
#include "api/host.h"
#include "api/open.h"
#include "base/hash.h"
#include "quant/format_info.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr SamplingParams kSampling = {.temperature = 0.7f, .top_k = 50, .top_p = 0.9f};  // as in a chat

// Of a product with every weight that a token meets: those of the layers, and those of the head, which only
// tokens meet whose logits are wanted. Weights that stay floats are not counted.
struct Work {
  double layers = 0, head = 0;
};

Work work_of(const model::Model& model, const std::string& activations) {
  Work work;
  const gguf::TensorInfo* head = nullptr;
  for (const gguf::TensorInfo& t : model.file.tensors()) {
    if (t.name == "output.weight" || (!head && t.name == "token_embd.weight")) head = &t;
    const quant::FormatInfo* format = quant::find_format(t.type);
    if (!t.name.starts_with("blk.") || t.dims[1] < 2 || !format || format->is_float) continue;
    const double matrix = static_cast<double>(t.dims[0] * t.dims[1]);
    const bool routed = t.dims[2] > 1 && model.config.experts > 0;
    work.layers += matrix * static_cast<double>(routed ? model.config.experts_used : t.dims[2]);
  }
  const quant::FormatInfo* format = head ? quant::find_format(head->type) : nullptr;
  if (format && !format->is_float) work.head = static_cast<double>(head->dims[0] * head->dims[1]);
  const double planes = activations == "int8x2" ? 2 : 1;
  return {work.layers * planes, work.head * planes};
}

struct Test {
  const char* name;
  int64_t prompt, decode, depth, batch;  // prompt: tokens past the depth

  // Of each sequence.
  int64_t tokens() const { return std::max(prompt, decode); }  // that are measured; the other is 1
  int64_t positions() const { return depth + prompt + decode; }
};

struct Pass {
  double seconds = 0;
  std::vector<double> steps;  // the seconds of each
  uint64_t weight_bytes = 0;
  uint64_t sampled = 0;  // a hash of all tokens, in the order in which they came
};

class ModelBench {
 public:
  ModelBench(const SessionOptions& options, const BenchOptions& how) : options_(options), how_(how) {}

  Json run() {
    const bool restarted = restart_peak_memory();
    const int64_t trained = take(model::check_model(open_file(options_), 0, Log{})).trained_context;
    limit_ = options_.context > 0 ? options_.context : trained;
    options_.context = 1 + kSmallest;
    for (int64_t depth : how_.depths)
      for (const Test& t : tests_at(depth))
        if (t.positions() <= limit_) options_.context = std::max(options_.context, t.positions());
    Json report = load();
    check_kernels();
    work_ = work_of(*parts_->model, options_.activations);
    for (int64_t depth : how_.depths) measure_at(depth);
    report["peak_memory"] = {{"bytes", peak_memory()},
                             {"since", restarted ? "the model was opened" : "the program started"}};
    Json devices = Json::array();
    for (const model::Stage& s : parts_->stages)
      devices.push_back({{"backend", s.ops->backend()},
                         {"layers", {s.first, s.last}},
                         {"peak_bytes", s.ops->device().peak()}});
    report["devices"] = std::move(devices);
    report["declined"] = parts_->snapshot().declined_count();
    report.update(file_hash(options_));
    report["tests"] = std::move(tests_);
    report["skipped"] = std::move(skipped_);
    return report;
  }

 private:
  static constexpr int64_t kSmallest = 63;
  static constexpr int kRepeats = 16;  // of the last step, for the device alone
  static constexpr int kLast = 8;      // steps that are held against it: as long a sequence, so as much work
  static constexpr int kTimes = 9;     // that each kernel is timed

  std::vector<Test> tests_at(int64_t depth) const {
    std::vector<Test> tests;
    for (int64_t tokens : how_.prompts) tests.push_back({"prompt", tokens, 1, depth, 1});
    for (int64_t tokens : how_.decodes)
      for (int64_t batch : how_.batches) tests.push_back({"decode", 1, tokens, depth, batch});
    return tests;
  }

  // Opens the model over and over, and asks each time for one token.
  Json load() {
    std::vector<double> opened, first_token;
    for (int i = 0; i <= how_.repetitions; ++i) {
      parts_.reset();
      options_.log = i == 0 ? how_.log : Log{};
      const auto start = Clock::now();
      parts_.emplace(open_parts(options_));
      const double open = seconds_since(start);
      pass({"load", 1, 1, 0, 1});
      if (i == 0) continue;
      opened.push_back(open);
      first_token.push_back(seconds_since(start));
    }
    const Info& info = parts_->info;
    return {{"path", info.path},
            {"name", info.name},
            {"architecture", info.architecture},
            {"quant", info.quant},
            {"bytes", info.file_bytes},
            {"parameters", info.parameters},
            {"load", {{"open_seconds", series(opened)}, {"first_token_seconds", series(first_token)}}}};
  }

  void measure_at(int64_t depth) {
    std::vector<Test> tests = tests_at(depth);
    std::erase_if(tests, [&](const Test& t) { return skips(t); });
    if (tests.empty()) return;
    const auto most = [&](auto of) {
      const auto t = std::max_element(tests.begin(), tests.end(),
                                      [&](const Test& a, const Test& b) { return of(a) < of(b); });
      return of(*t);
    };
    const auto sequences = static_cast<int>(most([](const Test& t) { return t.batch; }));
    const int64_t context = most([](const Test& t) { return t.positions(); });
    parts_->engine.reset();  // its memory first
    parts_->engine = take(engine::Engine::make(*parts_->model, parts_->stages,
                                               {.context = context,
                                                .chunk = std::max(parts_->chunk, sequences),
                                                .sequences = sequences,
                                                .vocab = parts_->tokenizer->size(),
                                                .positions = positions(context, sequences)}));
    if (depth > 0) pass({"fill", depth, 0, 0, 1});
    for (const Test& t : tests) measure(t);
  }

  // The context and, of each sequence, a page of the depth that a test goes on in a copy of.
  static int64_t positions(int64_t context, int64_t sequences) {
    return (engine::KvPool::pages_for(context) + 1) * sequences * ops::kPagePositions;
  }

  bool skips(const Test& t) {
    const std::vector<ops::KvShape> layers(static_cast<size_t>(parts_->model->config.layers),
                                           parts_->model->config.kv_shape());
    const uint64_t cache =
        engine::KvPool::bytes_per_page(layers) *
        static_cast<uint64_t>(engine::KvPool::pages_for(positions(t.positions(), t.batch)));
    const auto card = parts_->stages.back().ops->device().memory();
    const uint64_t memory = card ? card->free + parts_->engine->pool().bytes() : host_memory().usable();
    std::string why;
    if (t.positions() > limit_)
      why = fmt::format("it takes {} positions, the context has {}", t.positions(), limit_);
    else if (cache > memory)
      why = fmt::format("its keys and values take {} bytes, {} are free", cache, memory);
    if (why.empty()) return false;
    how_.log.warn("[api] {}: {} at depth {}, batch {}, is skipped: {}", parts_->info.path, t.name, t.depth,
                  t.batch, why);
    skipped_.push_back({{"test", t.name}, {"depth", t.depth}, {"batch", t.batch}, {"why", why}});
    return true;
  }

  void measure(const Test& t) {
    for (int64_t i = 1; i < t.batch && t.depth > 0; ++i)
      take(parts_->engine->clone(prompt({"fill", t.depth, 0, 0, 1}, 0), salt(0), salt(i)));
    std::vector<double> seconds, steps;
    Pass last;
    for (int i = 0; i <= how_.repetitions; ++i) {
      last = pass(t);
      if (i == 0) continue;
      seconds.push_back(last.seconds);
      steps.insert(steps.end(), last.steps.end() - std::min(std::ssize(last.steps), int64_t{kLast}),
                   last.steps.end());
    }
    const auto tokens = static_cast<double>(t.batch * t.tokens());
    std::vector<double> rates;
    for (double s : seconds) rates.push_back(tokens / s);
    const double passes = series(rates)["median"].get<double>() / tokens;  // a second
    const auto forwards = static_cast<double>(t.batch * (t.prompt - 1 + t.decode));
    const auto heads = static_cast<double>(t.batch * t.decode);
    double device = 0;
    if (t.decode > 1 || how_.kernels)
      for (const model::Stage& s : parts_->stages) device += s.ops->device_seconds(kRepeats);
    tests_.push_back({{"test", t.name},
                      {"tokens", t.tokens()},
                      {"depth", t.depth},
                      {"batch", t.batch},
                      {"tokens_per_second", series(rates)},
                      {"seconds", series(seconds)},
                      {"weight_bytes_per_second", static_cast<double>(last.weight_bytes) * passes},
                      {"multiply_adds_per_second", (forwards * work_.layers + heads * work_.head) * passes},
                      {"sampled", fmt::format("{:016x}", last.sampled)}});
    if (t.decode > 1 && device > 0) {
      const auto step = series(steps)["median"].get<double>();
      tests_.back().update({{"device_seconds_per_step", device}, {"host_seconds_per_step", step - device}});
    }
    if (how_.kernels) tests_.back()["kernels"] = kernels(device);
    how_.log.info("[api] {} of {} at depth {}, batch {}: {:.1f} tokens/s", t.name, t.tokens(), t.depth,
                  t.batch, tokens * passes);
  }

  // Of the last pass, which takes the devices `device` seconds as it is.
  Json kernels(double device) {
    Json rows = Json::array();
    double seconds = 0;
    int launches = 0;
    std::vector<ops::KernelTime> times;
    for (const model::Stage& s : parts_->stages) {
      const auto more = s.ops->kernel_times(kTimes);
      times.insert(times.end(), more.begin(), more.end());
    }
    for (const ops::KernelTime& t : times) {
      seconds += t.seconds;
      launches += t.launches;
    }
    for (const ops::KernelTime& t : times) {
      const bool known = t.bytes > 0;
      rows.push_back({{"kernel", t.kernel},
                      {"grid", t.grid},
                      {"threads", t.threads},
                      {"launches", t.launches},
                      {"seconds_each", t.seconds_each},
                      {"seconds", t.seconds},
                      {"share", t.seconds / seconds},
                      {"bytes", known ? Json(t.bytes) : Json()},
                      {"bytes_per_second", known ? Json(static_cast<double>(t.bytes) / t.seconds) : Json()}});
    }
    return {
        {"pass_seconds", device}, {"seconds", seconds}, {"launches", launches}, {"rows", std::move(rows)}};
  }

  // Before anything is measured.
  void check_kernels() {
    if (!how_.kernels) return;
    for (const model::Stage& s : parts_->stages)
      if (!s.ops->kernel_times(1).empty()) return;
    fail(Code::kUsage, "[api] the backend {} cannot time kernels one by one",
         parts_->stages.back().ops->backend());
  }

  // Keys and values of one sequence: its depth is read from pages of its own.
  static std::string salt(int64_t sequence) { return std::to_string(sequence); }

  // All sequences of a test to their ends, each from the depth that is in the cache; a fill puts it there.
  Pass pass(const Test& t) {
    Pass result;
    Fnv1a sampled;
    std::optional<Error> error;
    std::vector<engine::Request> requests;
    for (int64_t i = 0; i < t.batch; ++i) {
      engine::Request request{.prompt = prompt(t, i), .max_tokens = t.decode, .sampling = kSampling};
      request.sampling.seed = static_cast<uint64_t>(i);
      request.salt = salt(i);
      request.reuse = t.depth;
      request.keep = t.decode == 0;
      request.on_token = [&sampled](const engine::Token& token) {
        sampled.add(&token.id, sizeof token.id);
        return true;
      };
      request.on_finish = [&error, &t](engine::Finish& finish) {
        if (finish.error) error = finish.error;
        if (finish.cached_tokens != t.depth) error = Error(Code::kFailed, "[api] the cache lost the depth");
      };
      requests.push_back(std::move(request));
    }
    engine::Engine& engine = *parts_->engine;
    const Snapshot before = parts_->snapshot();
    const auto start = Clock::now();
    for (engine::Request& request : requests) take(engine.submit(std::move(request)));
    for (auto begin = start; take(engine.step()); begin = Clock::now())
      result.steps.push_back(seconds_since(begin));
    result.seconds = seconds_since(start);
    result.weight_bytes = parts_->snapshot().since(before).weight_bytes();
    result.sampled = sampled.value();
    if (error) throw std::move(*error);
    return result;
  }

  // Ids of no meaning: the same for all sequences up to the depth, others behind it.
  std::vector<int32_t> prompt(const Test& t, int64_t sequence) const {
    std::vector<int32_t> ids;
    for (int64_t at = 0; at < t.depth + t.prompt; ++at) {
      uint64_t x = static_cast<uint64_t>(at + 1 + (at < t.depth ? 0 : sequence << 32)) * 0x9e3779b97f4a7c15u;
      x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
      ids.push_back(static_cast<int32_t>((x >> 32) % static_cast<uint64_t>(parts_->info.vocab)));
    }
    return ids;
  }

  SessionOptions options_;
  const BenchOptions& how_;
  int64_t limit_ = 0;  // positions that a sequence may have
  std::optional<Opened> parts_;
  Work work_;
  Json tests_ = Json::array(), skipped_ = Json::array();
};

}  // namespace

Json series(std::vector<double> samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  const double median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  return {
      {"median", median}, {"min", sorted.front()}, {"max", sorted.back()}, {"samples", std::move(samples)}};
}

Json bench_model(const SessionOptions& options, const BenchOptions& how) {
  return ModelBench(options, how).run();
}

}  // namespace juno::api
