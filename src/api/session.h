// SPDX-License-Identifier: Apache-2.0
// One opened model: chat, completion, logits, perplexity. The composition root: here, and only here, file,
// tokenizer, backend, model and engine come together.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/grammar.h"
#include "base/error.h"
#include "base/log.h"
#include "base/recorder.h"
#include "base/thread_pool.h"
#include "engine/sampling.h"
#include "engine/sequence.h"

namespace juno::tokenizer {
class Tokenizer;
class ChatTemplate;
}  // namespace juno::tokenizer

namespace juno::api {

using engine::FinishReason;
using engine::SamplingParams;

struct SessionOptions {
  std::string model_path;
  std::span<const uint8_t>
      model_bytes;      // a file in memory instead, aligned to 8, kept by the caller; model_path names it
  int64_t context = 0;  // positions; 0: what the model was trained for, at most 4096
  int threads = 0;      // 0: as many as this process may use
  std::string backend = "cpu";       // a name of backend/backends.cc, "cuda:1" for a second card, or "auto"
  std::string gpu_layers;            // that the card takes, the last ones: a number, "all", "auto" (also "")
  std::vector<double> gpu_split;     // shares of several cards in those layers; empty: one card
  std::string isa;                   // "": the best one
  std::string activations = "int8";  // or int8x2 (docs/numerics.md §2)
  std::shared_ptr<ThreadPool> pool;  // the CPU's, shared by several sessions; null: this session's own
  bool repack = true;                // weights of the CPU are copied into the order that is read fastest
  int chunk = 0;                     // prompt tokens of one forward pass; 0: what suits the device
  std::string chat_template;         // a built-in name or a file; "": the model's own
  std::string draft_model;           // a file: a smaller model of the same vocabulary that guesses tokens
  int prompt_lookup = 0;             // tokens guessed at once from the text so far; 0: none
  Log log;
};

struct Info {
  std::string path, name, architecture, quant;  // quant: the type that most weight bytes have, as in "Q8_0"
  int64_t parameters = 0;
  uint64_t file_bytes = 0, weight_bytes = 0, kv_bytes = 0;
  uint64_t host_bytes = 0;  // that it was to take of the host: weights, also those in the file, cache, work
  int64_t context = 0, trained_context = 0;
  int32_t vocab = 0;
  int layers = 0;
  std::string backend, isa, activations;  // of several devices joined by "+"
  int threads = 0;

  // Layers [first, last) run here. estimate: bytes it was to hold, weights that stay in the file not counted.
  struct Device {
    std::string backend, name;
    int first = 0, last = 0;
    uint64_t estimate = 0;
  };
  std::vector<Device> devices;
};

struct Message {
  std::string role, content;
};

struct Generation {
  SamplingParams sampling;
  int64_t max_tokens = -1;  // -1: to the context's end
  std::vector<std::string> stop;
  Grammar grammar;  // the reply is held to it; null: to nothing
};

struct Stats {
  int64_t prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;  // cached: of the prompt, not computed again
  int64_t drafted_tokens = 0, accepted_tokens = 0;               // guesses, and the right ones of them
  double prefill_seconds = 0, decode_seconds = 0;
  uint64_t prefill_bytes = 0, decode_bytes = 0;  // of weights, read
  uint64_t declined = 0;                         // operations that ran elsewhere than asked
  Traffic traffic;                               // of the devices
};

struct Reply {
  std::string text;          // what on_text was given, joined
  std::vector<int32_t> ids;  // as sampled, the one that ended the reply included
  FinishReason reason = FinishReason::kStop;
  Stats stats;
};

struct Perplexity {
  int64_t tokens = 0, scored = 0;
  double mean_nll = 0, perplexity = 0;
  std::vector<double> window_nll;  // mean of each window
};

// Bytes that a context of this many positions takes.
struct Memory {
  uint64_t weights = 0;  // copied, or mapped from the file
  uint64_t kv = 0;
};

using OnText = std::function<void(std::string_view)>;  // complete UTF-8 characters
using OnLogits = std::function<void(int64_t position, std::span<const float> logits)>;

// One thread at a time, but for cancel(). Errors: kNoInput and kBadData for the file, kDevice for the
// backend, kUsage for arguments, kBadData for a prompt that does not fit, kInterrupted for logits and
// perplexity after cancel().
class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);
  ~Session();

  const Info& info() const;
  const tokenizer::Tokenizer& tokenizer() const;
  const tokenizer::ChatTemplate* chat_template() const;  // null: see chat_ready()
  // Whether chat() has a template: kConfig when the file has none and none was given, kBadData when the
  // file's own is broken (which open() only warns of).
  Result<void> chat_ready() const;

  // The ids that chat() feeds: rendered with a generation prompt, BOS exactly once, contents never control
  // tokens.
  Result<std::vector<int32_t>> chat_ids(std::span<const Message> messages) const;

  // Whether chat() and complete() take these parameters: kUsage names one that is out of its range.
  Result<void> check(const Generation& how) const;

  // Answers the last message; how.max_tokens 0 only evaluates the prompt. What this conversation has in
  // common with the one before is not computed again. A prompt longer than the context is an error with both
  // numbers; nothing is ever cut. After cancel(): kCancelled, with the text so far.
  Result<Reply> chat(std::span<const Message> messages, const Generation& how, const OnText& on_text);
  // Continues raw text. BOS where the model wants one; control tokens in the text are text unless
  // parse_special.
  Result<Reply> complete(std::string_view text, const Generation& how, const OnText& on_text,
                         bool parse_special = false);
  Result<Reply> complete(std::vector<int32_t> ids, const Generation& how, const OnText& on_text);

  // Logits at `positions` (increasing; empty: all) of the ids. chunk 0: the session's.
  Result<void> logits(std::span<const int32_t> ids, std::span<const int64_t> positions, int chunk,
                      const OnLogits& on_logits);
  // Windows of `window` tokens, each from an empty context, its first token not scored. Natural logarithm.
  Result<Perplexity> perplexity(std::span<const int32_t> ids, int64_t window);

  // Ends what is running within one forward pass. Safe from a signal handler and from other threads.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  Stats total() const;  // since open()
  // What ran since open(), operation by operation, and what ran elsewhere than asked, over all devices.
  Snapshot counters() const;
  // Of a context of this many positions.
  Memory memory(int64_t context) const;
  // Nothing runs and no page of the cache is lost. An error is a defect of this program.
  Result<void> check_idle() const;

 private:
  struct Parts;
  explicit Session(std::unique_ptr<Parts> parts);
  Result<Reply> generate(std::vector<int32_t> ids, const Generation& how, const OnText& on_text);
  void evaluate(engine::Request request);
  void evaluate_alone(engine::Request request, int chunk);

  std::unique_ptr<Parts> parts_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace juno::api
