// SPDX-License-Identifier: Apache-2.0
// The thread that owns a model and its engine. It takes what other threads leave for it between two steps,
// and sleeps when there is nothing to do.
#pragma once
#include <condition_variable>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "api/open.h"
#include "api/service_job.h"

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

  // From any thread; none waits for a step. add() throws kBusy when the queue is full.
  Service::Ticket add(std::shared_ptr<Job> job);
  void cancel(Service::Ticket ticket);
  Load load() const;

 private:
  using Clock = std::chrono::steady_clock;

  void run(const SessionOptions& options, std::promise<void> loaded);
  bool receive();
  Result<bool> stepped();
  void step();
  void settle();

  const ServiceOptions how_;
  std::unique_ptr<Opened> opened_;  // the thread's own, but for what never changes

  mutable std::mutex mutex_;  // of all until the counts; held for moments
  std::condition_variable arrived_;
  std::list<std::shared_ptr<Job>> arrivals_;  // lists: on the thread nothing is allocated for a job
  std::unordered_map<Service::Ticket, std::shared_ptr<Job>> jobs_;
  Service::Ticket last_ticket_ = 0;
  int64_t running_ = 0;              // of jobs_: those that have computed something
  Clock::time_point last_progress_;  // while there are jobs
  bool over_ = false;

  Tally tally_;
  std::atomic<int64_t> pages_used_ = 0;
  std::list<std::shared_ptr<Job>> live_;  // the thread's: what has begun
  std::mutex stopping_;
  std::thread thread_;
};

}  // namespace juno::api
