// SPDX-License-Identifier: Apache-2.0
#include "api/service_loop.h"

#include <algorithm>

#include "api/host.h"
#include "base/fp_env.h"

namespace juno::api {
namespace {

constexpr int kPromptScores = 16;  // of one step at least, where a prompt is scored

}  // namespace

Loop::Loop(const SessionOptions& options, const ServiceOptions& how) : how_(how) {
  std::promise<void> loaded;
  std::future<void> done = loaded.get_future();
  thread_ = std::thread(
      [&options, this, promise = std::move(loaded)]() mutable { run(options, std::move(promise)); });
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
    const uint64_t memory = how_.memory > 0 ? how_.memory : host_memory().usable();
    opened_ =
        std::make_unique<Opened>(open_parts(options, {.sequences = how_.sequences,
                                                      .positions = how_.kv_positions,
                                                      .outputs = std::max(how_.sequences, kPromptScores),
                                                      .host_bytes = memory}));
    loaded.set_value();
  } catch (...) {
    return loaded.set_exception(std::current_exception());
  }
  engine::Guides guides(*opened_->tokenizer);
  engine::Sampler sampler(opened_->tokenizer->size());
  Workshop workshop{*opened_->engine, guides, sampler, tally_};
  while (receive(workshop)) step();
  for (const auto& task : live_) task->cancel();
  for (const auto& task : live_) task->tend();
  for (const auto& task : live_) task->fail(Error(Code::kBusy, "[api] the model is being closed"));
  settle();
}

Service::Ticket Loop::add(std::shared_ptr<Task> task, const std::string& tenant) {
  Service::Ticket ticket = 0;
  Tasks one{task};
  {
    const std::lock_guard lock(mutex_);
    const int64_t waiting = static_cast<int64_t>(tasks_.size()) - running_;
    if (over_) fail(Code::kBusy, "[api] the model is being closed");
    if (waiting >= how_.queue)
      fail(Code::kBusy, "[api] {} requests are waiting, and the queue holds {}", waiting, how_.queue);
    if (!task->session.empty()) sessions_.use(tenant, task->session);
    if (tasks_.empty()) last_progress_ = Clock::now();
    ticket = task->ticket = ++last_ticket_;
    tasks_.emplace(ticket, std::move(task));
    arrivals_.splice(arrivals_.end(), one);
  }
  arrived_.notify_one();
  return ticket;
}

void Loop::cancel(Service::Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (const auto found = tasks_.find(ticket); found != tasks_.end()) found->second->cancel();
}

void Loop::end_session(std::string_view tenant, std::string_view session) {
  {
    const std::lock_guard lock(mutex_);
    sessions_.end(tenant, session);
  }
  arrived_.notify_one();
}

std::vector<SessionState> Loop::sessions(std::string_view tenant) {
  std::vector<SessionState> out;
  Errand look([&] {
    const std::lock_guard lock(mutex_);
    for (auto& [name, idle] : sessions_.of(tenant))
      out.push_back({name, opened_->engine->session_tokens(name), idle});
  });
  std::future<void> looked = look.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (over_) fail(Code::kBusy, "[api] the model is being closed");
    errands_.push_back(std::move(look));
  }
  arrived_.notify_one();
  looked.get();
  return out;
}

// Takes what has arrived; sleeps while there is nothing to do. False when the service ends.
bool Loop::receive(Workshop& workshop) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return over_ || !tasks_.empty() || !errands_.empty() || sessions_.any_ended(); });
  Tasks arrivals = std::move(arrivals_);
  std::list<Errand> errands = std::move(errands_);
  const std::list<std::string> ended = sessions_.take_ended();
  const bool over = over_;
  lock.unlock();
  for (const std::string& session : ended) workshop.engine.end_session(session);
  for (Errand& errand : errands) errand();
  for (const auto& task : arrivals) task->begin(workshop);
  live_.splice(live_.end(), arrivals);
  for (const auto& task : live_) task->tend();
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
    for (const auto& task : live_) task->fail(more.error());  // those who have not heard of it
  } else if (!*more) {
    for (const auto& task : live_) task->fail(Error(Code::kFailed, "[api] the engine has lost a request"));
  }
  settle();
}

// Forgets what is done.
void Loop::settle() {
  Tasks done;
  for (auto task = live_.begin(); task != live_.end();) {
    const auto next = std::next(task);
    if ((*task)->done()) done.splice(done.end(), live_, task);
    task = next;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& task : done) {
    tasks_.erase(task->ticket);
    sessions_.settle(task->session);
  }
  running_ = std::ranges::count_if(live_, [](const auto& task) { return task->started(); });
  engine_ = opened_->engine->counters();
  last_progress_ = Clock::now();
}

Load Loop::load() const {
  const std::lock_guard lock(mutex_);
  Load load{.waiting = static_cast<int64_t>(tasks_.size()) - running_,
            .running = running_,
            .sequences = how_.sequences,
            .pages_used = engine_.pages_used,
            .pages_cached = engine_.pages_cached,
            .pages_total = engine_.pages_total,
            .prompt_tokens = tally_.prompt_tokens,
            .cached_tokens = tally_.cached_tokens,
            .new_tokens = tally_.new_tokens,
            .finished = tally_.finished,
            .failed = tally_.failed,
            .cancelled = tally_.cancelled,
            .preempted = engine_.preempted,
            .drafted = engine_.drafted,
            .accepted = engine_.accepted,
            .sessions = sessions_.count()};
  if (!tasks_.empty())
    load.since_progress = std::chrono::duration<double>(Clock::now() - last_progress_).count();
  return load;
}

}  // namespace juno::api
