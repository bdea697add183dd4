// SPDX-License-Identifier: Apache-2.0
// Prompts go in waves of a mode's batch, each to its end: so that what is timed as decoding is nothing else.
#include "api/gate_arm.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "api/clock.h"
#include "api/counters.h"
#include "api/open.h"
#include "base/hash.h"

namespace juno::api {
namespace {

using Json = nlohmann::ordered_json;

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

// What each stage was to hold, and what its device held at most.
Json stages_json(const Opened& parts) {
  Json list = Json::array();
  for (size_t i = 0; i < parts.stages.size(); ++i) {
    const model::Stage& s = parts.stages[i];
    const Estimate& e = parts.estimates[i];
    const auto memory = s.ops->device().memory();
    list.push_back(
        {{"backend", s.ops->backend()},
         {"layers", {s.first, s.last}},
         {"estimate", {{"weights", e.weights}, {"kv", e.kv}, {"work", e.work}, {"upload", e.upload}}},
         {"predicted_bytes", e.total()},
         {"held_bytes", s.ops->device().held()},
         {"peak_bytes", s.ops->device().peak()},
         {"card_bytes", memory ? Json(memory->total) : Json()}});
  }
  return list;
}

class ArmRun {
 public:
  ArmRun(const SessionOptions& options, const GateWork& work) : options_(options), work_(work) {}

  Json run(const OnGateMode& on_mode) {
    const auto start = Clock::now();
    parts_.emplace(open_parts(options_));
    const double ready = seconds_since(start);
    encode();
    for (size_t mode = 0; mode < work_.modes.size(); ++mode) {
      Json figures = ask(mode);
      on_mode(mode, std::move(answers_), std::move(figures));
    }
    const Info& info = parts_->info;
    return {{"backend", info.backend},
            {"isa", info.isa},
            {"threads", info.threads},
            {"device", device_json(parts_->stages.back().ops->device())},
            {"ready_seconds", ready},
            {"stages", stages_json(*parts_)},
            {"prompt_tokens", prompt_tokens_},
            {"cut", cut_},
            {"routing", routing_json(parts_->snapshot())}};
  }

 private:
  // A prompt that leaves no room for its answer loses its end; the report counts those.
  void encode() {
    const int64_t room = parts_->info.context - work_.max_tokens;
    if (room < 1)
      fail(Code::kUsage, "[api] a context of {} holds no prompt and {} tokens", parts_->info.context,
           work_.max_tokens);
    for (const std::string& text : work_.prompts) {
      std::vector<int32_t> ids = begun(parts_->tokenizer->encode(text), *parts_->tokenizer);
      if (ids.empty()) fail(Code::kBadData, "[api] a prompt of the gate has no tokens");
      cut_ += static_cast<int64_t>(ids.size()) > room;
      ids.resize(std::min(ids.size(), static_cast<size_t>(room)));
      longest_ = std::max(longest_, static_cast<int64_t>(ids.size()));
      prompt_tokens_ += static_cast<int64_t>(ids.size());
      prompts_.push_back(std::move(ids));
    }
  }

  Json ask(size_t mode) {
    const GateMode& how = work_.modes[mode];
    const auto chunk = static_cast<int>(how.chunk > 0 ? how.chunk : longest_);
    parts_->engine.reset();  // its memory first
    parts_->engine = take(engine::Engine::make(*parts_->model, parts_->stages,
                                               {.context = longest_ + work_.max_tokens,
                                                .chunk = std::max(chunk, how.batch),
                                                .sequences = how.batch,
                                                .vocab = parts_->tokenizer->size()}));
    if (work_.prompt_logits)
      take(parts_->engine->set_chunk(std::max(chunk, how.batch), std::max(chunk, how.batch)));
    // Enough to fill the batch: a prompt may be asked more than once.
    const size_t count = std::max(prompts_.size(), static_cast<size_t>(how.batch));
    answers_.assign(count, {});
    prefill_seconds_ = decode_seconds_ = 0;
    decoded_ = 0;
    std::optional<uint64_t> held;  // after half of the answers, when all that grows has grown
    for (size_t at = 0; at < count; at += static_cast<size_t>(how.batch)) {
      wave(mode, at, std::min(count, at + static_cast<size_t>(how.batch)));
      if (!held && 2 * (at + static_cast<size_t>(how.batch)) >= count) held = held_bytes();
    }
    int64_t asked = 0, said = 0;
    for (size_t i = 0; i < count; ++i) {
      asked += static_cast<int64_t>(prompts_[i % prompts_.size()].size());
      said += static_cast<int64_t>(answers_[i].ids.size());
    }
    return {{"batch", how.batch},
            {"chunk", how.chunk},
            {"logits", how.logits},
            {"held_bytes", {*held, held_bytes()}},
            {"prompt_tokens", asked},
            {"new_tokens", said},
            {"prefill_tokens_per_second", rate(asked, prefill_seconds_)},
            {"decode_tokens_per_second", rate(decoded_, decode_seconds_)}};
  }

  uint64_t held_bytes() const {
    uint64_t sum = 0;
    for (const model::Stage& s : parts_->stages) sum += s.ops->device().held();
    return sum;
  }

  void wave(size_t mode, size_t begin, size_t end) {
    std::optional<Error> error;
    size_t started = 0;
    int64_t tokens = 0;
    const auto start = Clock::now();
    for (size_t i = begin; i < end; ++i) {
      engine::Request request = listen(mode, i, error);
      request.on_token = [this, i, &started, &tokens](const engine::Token& token) {
        started += answers_[i].ids.empty();
        answers_[i].ids.push_back(token.id);
        ++tokens;
        return true;
      };
      take(parts_->engine->submit(std::move(request)));
    }
    bool more = true;
    while (more && started < end - begin && !error) more = take(parts_->engine->step());
    prefill_seconds_ += seconds_since(start);
    const int64_t before = tokens;
    const auto decoding = Clock::now();
    while (more && !error) more = take(parts_->engine->step());
    decode_seconds_ += seconds_since(decoding);
    decoded_ += tokens - before;
    if (error) throw std::move(*error);
  }

  engine::Request listen(size_t mode, size_t index, std::optional<Error>& error) {
    const size_t prompt = index % prompts_.size();
    engine::Request request{.prompt = prompts_[prompt], .max_tokens = work_.max_tokens};
    request.every_logits = work_.modes[mode].logits;
    request.reuse = 0;  // each answer is computed from its first token
    request.keep = false;
    if (work_.prompt_logits)
      for (size_t p = 0; p < prompts_[prompt].size(); ++p)
        request.logits_at.push_back(static_cast<int64_t>(p));
    request.on_logits = [this, mode, index, prompt](int64_t, std::span<const float> row) {
      std::vector<uint64_t>& hashes = answers_[index].hashes;
      Fnv1a hash;
      if (work_.tamper) {
        std::vector<float> copy(row.begin(), row.end());
        work_.tamper(mode, prompt, hashes.size(), copy);
        hash.add(copy.data(), copy.size() * sizeof(float));
      } else {
        hash.add(row.data(), row.size_bytes());
      }
      hashes.push_back(hash.value());
    };
    request.on_finish = [&error](engine::Finish& finish) {
      if (finish.error) error = finish.error;
    };
    return request;
  }

  const SessionOptions& options_;
  const GateWork& work_;
  std::optional<Opened> parts_;
  std::vector<std::vector<int32_t>> prompts_;
  int64_t longest_ = 0, prompt_tokens_ = 0, cut_ = 0;
  std::vector<GateAnswer> answers_;  // of the mode that runs
  double prefill_seconds_ = 0, decode_seconds_ = 0;
  int64_t decoded_ = 0;
};

}  // namespace

Json run_arm(const SessionOptions& options, const GateWork& work, const OnGateMode& on_mode) {
  return ArmRun(options, work).run(on_mode);
}

}  // namespace juno::api
