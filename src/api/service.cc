// SPDX-License-Identifier: Apache-2.0
// What a caller's thread can decide is decided here, before a request reaches the service's own.
#include "api/service.h"

#include <algorithm>
#include <utility>

#include "api/service_loop.h"

namespace juno::api {

struct Service::Parts {
  Parts(const SessionOptions& options, const ServiceOptions& how) : loop(options, how) {}

  void check(const Work& work) const;
  Loop loop;
};

Service::Service(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Service::~Service() = default;
void Service::stop() { parts_->loop.stop(); }

Result<std::unique_ptr<Service>> Service::open(const SessionOptions& options, const ServiceOptions& how) {
  return guard(
      [&] { return std::unique_ptr<Service>(new Service(std::make_unique<Parts>(options, how))); });
}

void Service::Parts::check(const Work& w) const {
  const Opened& opened = loop.opened();
  const auto prompt = static_cast<int64_t>(w.prompt.size());
  const int64_t context = opened.info.context;
  if (prompt == 0) fail(Code::kUsage, "[api] the prompt is empty");
  if (prompt > context || (prompt == context && w.max_tokens != 0)) {
    fail(Code::kBadData,
         "[api] the prompt has {} tokens and the context holds {}: there is no room for an answer", prompt,
         context);
  }
  const int64_t rows = opened.model->config.vocab;
  for (const int32_t id : w.prompt)
    if (id < 0 || id >= rows) fail(Code::kBadData, "[api] token {} is none of the model's {}", id, rows);
  if (w.choices < 1) fail(Code::kUsage, "[api] {} choices: at least 1", w.choices);
  if (w.max_tokens < -1) fail(Code::kUsage, "[api] at most {} tokens: at least 0, or -1", w.max_tokens);
  if (w.min_tokens < 0 || (w.max_tokens >= 0 && w.min_tokens > w.max_tokens))
    fail(Code::kUsage, "[api] at least {} tokens, of at most {}", w.min_tokens, w.max_tokens);
  const int32_t vocab = opened.tokenizer->size();
  if (w.logprobs && (*w.logprobs < 0 || *w.logprobs > vocab))
    fail(Code::kUsage, "[api] {} alternatives of {} tokens", *w.logprobs, vocab);
  take(engine::validate(w.sampling, vocab));
}

Result<Service::Ticket> Service::submit(Work work, std::shared_ptr<Listener> listener) {
  return guard([&]() -> Ticket {
    parts_->check(work);
    try {
      return parts_->loop.add(std::make_shared<Job>(std::move(work), std::move(listener), tokenizer()));
    } catch (const std::bad_alloc&) {
      throw out_of_memory();
    }
  });
}

void Service::cancel(Ticket ticket) { parts_->loop.cancel(ticket); }

Result<std::vector<std::vector<float>>> Service::embed(const EmbeddingWork&) {
  return tl::unexpected(Error(Code::kUsage, "[api] this model gives no embeddings"));
}

int64_t Service::embedding_size() const { return 0; }

Result<void> Service::end_session(std::string_view, std::string_view session) {
  return guard([&] { fail(Code::kNotFound, "[api] no session \"{}\"", session); });
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
