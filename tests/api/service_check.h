// SPDX-License-Identifier: Apache-2.0
// A service of the demo model, and a listener that keeps what it hears.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "api/golden_check.h"
#include "api/service.h"

namespace juno::api {

// One choice of a reply, joined.
struct HeardChoice {
  std::string text;
  std::vector<std::string> pieces;
  std::vector<int32_t> ids;
  std::vector<TokenScore> scores;
  std::optional<ChoiceEnd> end;
};

class Heard : public Listener {
 public:
  void on_delta(Delta delta) override {
    const std::lock_guard lock(mutex_);
    HeardChoice& c = choices_[delta.choice];
    EXPECT_FALSE(c.end) << "a delta after its choice has ended";
    c.text += delta.text;
    c.pieces.push_back(std::move(delta.text));
    c.ids.insert(c.ids.end(), delta.ids.begin(), delta.ids.end());
    c.scores.insert(c.scores.end(), delta.scores.begin(), delta.scores.end());
    changed_.notify_all();
  }
  void on_choice_end(ChoiceEnd end) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(choices_[end.choice].end) << "a choice ends once";
    choices_[end.choice].end = std::move(end);
  }
  void on_end(Outcome outcome) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(outcome_) << "a request ends once";
    outcome_ = std::move(outcome);
    changed_.notify_all();
  }

  Outcome wait() {
    std::unique_lock lock(mutex_);
    const bool ended = changed_.wait_for(lock, std::chrono::minutes(2), [&] { return outcome_.has_value(); });
    EXPECT_TRUE(ended) << "the request never ended";
    return outcome_.value_or(Outcome{});
  }
  void wait_for_end() {  // takes no memory
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(2), [&] { return outcome_.has_value(); });
  }
  // Until the first text has come.
  void wait_for_text() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(2), [&] { return !choices_.empty() || outcome_; });
  }
  HeardChoice choice(int index = 0) {
    const std::lock_guard lock(mutex_);
    return choices_[index];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, HeardChoice> choices_;
  std::optional<Outcome> outcome_;
};

inline std::unique_ptr<Service> open_service(const ServiceOptions& how = {}, int64_t context = 0) {
  return take(Service::open({.model_path = kDemo, .context = context}, how));
}

// The ids of a user's message, as the demo model's template has it.
inline std::vector<int32_t> asked(const Service& service, const std::string& text) {
  return service.tokenizer().encode("<|im_start|>user\n" + text + "<|im_end|>\n<|im_start|>assistant\n",
                                    {.parse_special = true});
}

inline std::shared_ptr<Heard> start(Service& service, Work work) {
  auto heard = std::make_shared<Heard>();
  take(service.submit(std::move(work), heard));
  return heard;
}

// Runs a request to its end.
inline std::shared_ptr<Heard> run(Service& service, Work work) {
  auto heard = start(service, std::move(work));
  heard->wait();
  return heard;
}

// A request has ended a moment before the load says so.
inline void wait_until(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(holds());
}

inline void expect_idle(const Service& service) {
  wait_until([&] { return service.load().waiting + service.load().running == 0; });
  const Load load = service.load();
  EXPECT_EQ(load.pages_used, 0);
  EXPECT_EQ(load.since_progress, 0);
}

}  // namespace juno::api
