// SPDX-License-Identifier: Apache-2.0
#include "api/service_loop.h"

#include <algorithm>

#include "api/host.h"
#include "base/fp_env.h"

namespace juno::api {

Loop::Loop(const SessionOptions& options, const ServiceOptions& how) : how_(how) {
  std::promise<void> loaded;
  std::future<void> done = loaded.get_future();
  thread_ = std::thread([&options, this, promise = std::move(loaded)]() mutable {
    run(options, std::move(promise));
  });
  try {
    done.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

Loop::~Loop() { stop(); }

void Loop::stop() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  arrived_.notify_one();
  const std::lock_guard lock(stopping_);
  if (thread_.joinable()) thread_.join();
}

// The options live until `loaded` is set.
void Loop::run(const SessionOptions& options, std::promise<void> loaded) {
  const FpEnv mode;
  try {
    opened_ = std::make_unique<Opened>(
        open_parts(options, {.sequences = how_.sequences,
                             .positions = how_.kv_positions,
                             .host_bytes = how_.memory > 0 ? how_.memory : host_memory().usable()}));
    loaded.set_value();
  } catch (...) {
    return loaded.set_exception(std::current_exception());
  }
  while (receive()) step();
  for (const auto& job : live_) job->cancel();
  for (const auto& job : live_) job->tend(Clock::now());
  settle();
}

Service::Ticket Loop::add(std::shared_ptr<Job> job) {
  Service::Ticket ticket = 0;
  std::list<std::shared_ptr<Job>> one{job};
  {
    const std::lock_guard lock(mutex_);
    const int64_t waiting = static_cast<int64_t>(jobs_.size()) - running_;
    if (over_) fail(Code::kBusy, "[api] the model is being closed");
    if (waiting >= how_.queue)
      fail(Code::kBusy, "[api] {} requests are waiting, and the queue holds {}", waiting, how_.queue);
    if (jobs_.empty()) last_progress_ = Clock::now();
    ticket = job->ticket = ++last_ticket_;
    jobs_.emplace(ticket, std::move(job));
    arrivals_.splice(arrivals_.end(), one);
  }
  arrived_.notify_one();
  return ticket;
}

void Loop::cancel(Service::Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (const auto found = jobs_.find(ticket); found != jobs_.end()) found->second->cancel();
}

// Takes what has arrived; sleeps while there is nothing to do. False when the service ends.
bool Loop::receive() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return over_ || !jobs_.empty(); });
  std::list<std::shared_ptr<Job>> arrivals = std::move(arrivals_);
  const bool over = over_;
  lock.unlock();
  for (const auto& job : arrivals) job->begin(*opened_->engine, tally_);
  live_.splice(live_.end(), arrivals);
  const auto now = Clock::now();
  for (const auto& job : live_) job->tend(now);
  return !over;
}

Result<bool> Loop::stepped() {
  try {
    return opened_->engine->step();
  } catch (const std::exception&) {
    return tl::unexpected(out_of_memory());
  }
}

void Loop::step() {
  const Result<bool> more = stepped();
  if (!more) {
    for (const auto& job : live_) job->fail(more.error());  // those who have not heard of it
  } else if (!*more) {
    for (const auto& job : live_) job->fail(Error(Code::kFailed, "[api] the engine has lost a request"));
  }
  settle();
}

// Counts and forgets what is done.
void Loop::settle() {
  std::list<std::shared_ptr<Job>> done;
  for (auto job = live_.begin(); job != live_.end();) {
    const auto next = std::next(job);
    if ((*job)->done()) done.splice(done.end(), live_, job);
    job = next;
  }
  pages_used_ = opened_->engine->pool().used();
  const std::lock_guard lock(mutex_);
  for (const auto& job : done) jobs_.erase(job->ticket);
  running_ = std::ranges::count_if(live_, [](const auto& job) { return job->started(); });
  last_progress_ = Clock::now();
}

Load Loop::load() const {
  Load load{.sequences = how_.sequences,
            .pages_used = pages_used_,
            .pages_total = opened_->engine->pool().total(),
            .prompt_tokens = tally_.prompt_tokens,
            .cached_tokens = tally_.cached_tokens,
            .new_tokens = tally_.new_tokens,
            .finished = tally_.finished,
            .failed = tally_.failed,
            .cancelled = tally_.cancelled};
  const std::lock_guard lock(mutex_);
  load.running = running_;
  load.waiting = static_cast<int64_t>(jobs_.size()) - running_;
  if (!jobs_.empty())
    load.since_progress = std::chrono::duration<double>(Clock::now() - last_progress_).count();
  return load;
}

}  // namespace juno::api
