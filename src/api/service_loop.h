// SPDX-License-Identifier: Apache-2.0
// The thread that owns a model and its engine. It takes what other threads leave for it between two steps,
// and sleeps when there is nothing to do.
#pragma once
#include <condition_variable>
#include <future>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "api/open.h"
#include "api/service.h"
#include "api/service_sessions.h"
#include "api/service_task.h"

namespace juno::api {

class Loop {
 public:
  // Returns once the model is loaded, on the thread, or could not be: then it throws.
  Loop(const SessionOptions& options, const ServiceOptions& how);
  ~Loop();
  void stop();  // ends what runs, and the thread
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const Opened& opened() const { return *opened_; }

  // From any thread; none waits for a step. add() throws kBusy when the queue is full and kNotFound when the
  // task's session is another tenant's.
  Service::Ticket add(std::shared_ptr<Task> task, const std::string& tenant);
  void cancel(Service::Ticket ticket);
  void end_session(std::string_view tenant, std::string_view session);
  // Waits for a step; throws kBusy after stop().
  std::vector<SessionState> sessions(std::string_view tenant);
  Load load() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Errand = std::packaged_task<void()>;
  using Tasks = std::list<std::shared_ptr<Task>>;  // spliced: the thread allocates nothing for them

  void run(const SessionOptions& options, std::promise<void> loaded);
  bool receive(Workshop& workshop);
  void step();
  Result<bool> stepped();
  void settle();

  const ServiceOptions how_;
  std::unique_ptr<Opened> opened_;  // the thread's own, but for what never changes
  Tally tally_;

  mutable std::mutex mutex_;  // of all until over_; held for moments
  std::condition_variable arrived_;
  Tasks arrivals_;
  std::unordered_map<Service::Ticket, std::shared_ptr<Task>> tasks_;
  Service::Ticket last_ticket_ = 0;
  int64_t running_ = 0;  // of tasks_: for which something was computed
  Sessions sessions_;
  std::list<Errand> errands_;        // what others want to know of the engine
  engine::Counters engine_;          // after the last step
  Clock::time_point last_progress_;  // while there are tasks
  bool over_ = false;

  Tasks live_;  // the thread's: what has begun
  std::mutex stopping_;
  std::thread thread_;
};

}  // namespace juno::api
