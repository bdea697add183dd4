// SPDX-License-Identifier: Apache-2.0
// What a caller's thread can decide is decided here, before a request reaches the service's own.
#include "api/service.h"

#include <algorithm>
#include <utility>

#include "api/service_embedding.h"
#include "api/service_job.h"
#include "api/service_loop.h"

namespace juno::api {
namespace {

// Memory that cannot be had now may be there later.
template <class F>
auto guard_memory(F&& body) {
  return guard([&] {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      throw out_of_memory();
    }
  });
}

}  // namespace

struct Service::Parts {
  Parts(const SessionOptions& options, const ServiceOptions& how)
      : loop(options, how), pooling(pooling_of(loop.opened().model->file)) {
    if (pooling.empty() && how.embeddings) pooling = "mean";
  }

  void check_prompt(std::span<const int32_t> prompt) const;
  void check(const Work& work) const;

  Loop loop;
  std::string pooling;  // "": no embeddings
};

Service::Service(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Service::~Service() = default;
void Service::stop() { parts_->loop.stop(); }

Result<std::unique_ptr<Service>> Service::open(const SessionOptions& options, const ServiceOptions& how) {
  return guard([&] { return std::unique_ptr<Service>(new Service(std::make_unique<Parts>(options, how))); });
}

// A prompt that fills the context has a reply of no tokens.
void Service::Parts::check_prompt(std::span<const int32_t> prompt) const {
  const Opened& opened = loop.opened();
  const auto size = static_cast<int64_t>(prompt.size());
  const int64_t context = opened.info.context;
  if (size == 0) fail(Code::kUsage, "[api] the prompt is empty");
  if (size > context)
    fail(Code::kBadData, "[api] the prompt has {} tokens and the context holds {}", size, context);
  const int64_t rows = opened.model->config.vocab;
  for (const int32_t id : prompt)
    if (id < 0 || id >= rows) fail(Code::kBadData, "[api] token {} is none of the model's {}", id, rows);
}

void Service::Parts::check(const Work& w) const {
  check_prompt(w.prompt);
  if (w.choices < 1) fail(Code::kUsage, "[api] {} choices: at least 1", w.choices);
  if (w.max_tokens < -1) fail(Code::kUsage, "[api] at most {} tokens: at least 0, or -1", w.max_tokens);
  if (w.min_tokens < 0 || (w.max_tokens >= 0 && w.min_tokens > w.max_tokens))
    fail(Code::kUsage, "[api] at least {} tokens, of at most {}", w.min_tokens, w.max_tokens);
  SamplingParams sampling = w.sampling;
  sampling.top_logprobs = w.logprobs.value_or(0);
  take(engine::validate(sampling, loop.opened().tokenizer->size()));
}

Result<Service::Ticket> Service::submit(Work work, std::shared_ptr<Listener> listener) {
  return guard_memory([&] {
    parts_->check(work);
    const std::string tenant = work.tenant;
    return parts_->loop.add(std::make_shared<Job>(std::move(work), std::move(listener), tokenizer()), tenant);
  });
}

void Service::cancel(Ticket ticket) { parts_->loop.cancel(ticket); }

Result<std::vector<std::vector<float>>> Service::embed(EmbeddingWork work) {
  return guard_memory([&] {
    if (parts_->pooling.empty()) {
      fail(Code::kUsage, "[api] {} gives no embeddings: it names no pooling",
           parts_->loop.opened().info.path);
    }
    if (work.inputs.empty()) fail(Code::kUsage, "[api] there are no inputs");
    for (const auto& input : work.inputs) parts_->check_prompt(input);
    if (work.pooling.empty()) work.pooling = parts_->pooling;
    const std::string tenant = work.tenant;
    const auto task = std::make_shared<EmbeddingTask>(std::move(work));
    auto result = task->result();
    parts_->loop.add(task, tenant);
    return result.get();
  });
}

int64_t Service::embedding_size() const {
  return parts_->pooling.empty() ? 0 : parts_->loop.opened().model->config.dim;
}

Result<std::vector<SessionState>> Service::sessions(std::string_view tenant) const {
  return guard([&] { return parts_->loop.sessions(tenant); });
}

Result<void> Service::end_session(std::string_view tenant, std::string_view session) {
  return guard([&] { parts_->loop.end_session(tenant, session); });
}

const Info& Service::info() const { return parts_->loop.opened().info; }
const tokenizer::Tokenizer& Service::tokenizer() const { return *parts_->loop.opened().tokenizer; }
const tokenizer::ChatTemplate* Service::chat_template() const {
  return parts_->loop.opened().prompt->chat_template();
}
const std::optional<Error>& Service::chat_fault() const { return parts_->loop.opened().prompt->fault(); }

std::vector<int32_t> Service::ids(const tokenizer::Rendered& rendered) const {
  return begun(tokenizer().encode_segments(rendered.segments), tokenizer());
}

Load Service::load() const { return parts_->loop.load(); }
Snapshot Service::counters() const { return parts_->loop.opened().snapshot(); }

}  // namespace juno::api
