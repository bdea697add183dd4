// SPDX-License-Identifier: Apache-2.0
// One model that many clients share. Its engine runs on a thread of its own; requests come from any thread
// and their tokens go back through a Listener.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/session.h"
#include "tokenizer/chat_template.h"

namespace juno::grammar {
struct Automaton;
}

namespace juno::api {

using engine::Priority;

using engine::Scored;  // a token that was picked, or could have been, and its logarithm of probability

struct TokenScore : Scored {
  std::vector<Scored> top;  // most probable first
};

// A piece of one choice: whole UTF-8 characters, and the scores of the tokens that they end (Work::logprobs).
struct Delta {
  int choice = 0;
  std::string text;
  std::vector<int32_t> ids;
  std::vector<TokenScore> scores;  // of ids
};

struct ChoiceEnd {
  int choice = 0;
  FinishReason reason = FinishReason::kStop;
  std::optional<std::string> stop;  // the stop string that matched
  int64_t tokens = 0;
};

// What a request has cost.
struct Outcome {
  std::optional<Error> error;
  int64_t prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;  // of all choices
  int64_t drafted_tokens = 0, accepted_tokens = 0;               // of speculation
  double queue_seconds = 0, prefill_seconds = 0, decode_seconds = 0;
};

// Called on the service's thread, in this order; must neither block nor call the service, but for cancel().
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_prefill(int64_t done, int64_t prompt_tokens) { (void)done, (void)prompt_tokens; }
  virtual void on_prompt_scores(std::vector<TokenScore> scores) { (void)scores; }  // Work::prompt_logprobs
  virtual void on_delta(Delta delta) = 0;
  virtual void on_choice_end(ChoiceEnd end) = 0;
  virtual void on_end(Outcome outcome) = 0;  // last, once, whatever happens
};

// A request in tokens.
struct Work {
  std::vector<int32_t> prompt;  // not empty
  int choices = 1;              // the prompt is computed once; choice i draws from stream i
  int64_t max_tokens = -1;      // of each choice; -1: to the context's end
  int64_t min_tokens = 0;       // end tokens are banned until then
  bool ignore_end = false;      // end tokens are banned
  SamplingParams sampling;
  std::vector<std::string> stop;
  std::vector<int32_t> keep_control;  // control tokens whose text belongs to the reply: a dialect's markers
  std::shared_ptr<const grammar::Automaton> grammar;  // the reply is held to it
  std::optional<int> logprobs;                        // with this many alternatives
  bool prompt_logprobs = false;

  Priority priority = Priority::kNormal;
  std::string tenant;   // who asks: shares are fair among tenants, sessions belong to them
  std::string salt;     // prefixes are shared under an equal salt only; "": the tenant's own
  std::string session;  // its pages stay until another request of it, or end_session(); "": none
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct EmbeddingWork {
  std::vector<std::vector<int32_t>> inputs;
  std::string pooling;  // mean, cls or last; "": the model's
  Priority priority = Priority::kNormal;
  std::string tenant;
};

struct ServiceOptions {
  int sequences = 32;        // running at once
  int64_t queue = 1024;      // waiting, beyond which submit() fails with kBusy
  int64_t kv_positions = 0;  // of the shared pool; 0: what suits `sequences` and the memory there is
  bool embeddings = false;   // give embeddings although the file names no pooling
  uint64_t memory = 0;       // bytes of the host that it may take; 0: what is free
};

struct SessionState {
  std::string name;
  int64_t tokens = 0;       // that are kept for it now
  double idle_seconds = 0;  // since a request of it began or ended
};

// A picture of now, for /health and /metrics; reading it never waits for the engine.
struct Load {
  int64_t waiting = 0, running = 0, sequences = 0;
  int64_t pages_used = 0, pages_cached = 0, pages_total = 0;  // cached: nobody's, given up when wanted
  int64_t prompt_tokens = 0, cached_tokens = 0, new_tokens = 0, finished = 0, failed = 0, cancelled = 0;
  int64_t preempted = 0, drafted = 0, accepted = 0, sessions = 0;
  double since_progress = 0;  // seconds that work has waited for a step; 0 when idle
};

class Service {
 public:
  static Result<std::unique_ptr<Service>> open(const SessionOptions& options, const ServiceOptions& how);
  ~Service();  // stop()
  // Ends what runs: kCancelled. From now on submit() fails with kBusy; the rest goes on. From any thread but
  // the service's own.
  void stop();

  using Ticket = int64_t;
  // kBusy when the queue is full, kNotFound for another tenant's session; kUsage and kBadData as Session
  // says. After an error the listener is never called.
  Result<Ticket> submit(Work work, std::shared_ptr<Listener> listener);
  // From any thread; takes effect within one forward pass. An unknown ticket is nothing.
  void cancel(Ticket ticket);

  // [inputs][dim], unit length. Waits its turn among the requests, on the caller's thread.
  Result<std::vector<std::vector<float>>> embed(EmbeddingWork work);
  int64_t embedding_size() const;  // 0: this model gives none

  // This tenant's, by name. Waits for a step. kBusy after stop().
  Result<std::vector<SessionState>> sessions(std::string_view tenant) const;
  // kNotFound for none of this tenant's.
  Result<void> end_session(std::string_view tenant, std::string_view session);

  const Info& info() const;
  const tokenizer::Tokenizer& tokenizer() const;
  const tokenizer::ChatTemplate* chat_template() const;  // null: see chat_fault()
  const std::optional<Error>& chat_fault() const;
  // [segments of a rendered template] -> ids, BOS exactly once.
  std::vector<int32_t> ids(const tokenizer::Rendered& rendered) const;
  Load load() const;
  Snapshot counters() const;

 private:
  struct Parts;
  explicit Service(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace juno::api
