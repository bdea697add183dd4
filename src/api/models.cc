// SPDX-License-Identifier: Apache-2.0
// A user holds a Lease; a model is unloaded by the sweeper's thread alone, and only while there is no lease.
// So the last pointer to a service never goes on its own thread.
#include "api/models.h"

#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "api/clock.h"
#include "api/host.h"
#include "api/open.h"
#include "base/cpu_limits.h"

namespace juno::api {
namespace {

using State = ModelState::State;

int64_t created(const SessionOptions& options) {
  struct stat file {};
  if (options.model_bytes.empty() && stat(options.model_path.c_str(), &file) == 0) return file.st_mtime;
  return std::time(nullptr);
}

struct Entry {
  NamedModel model;
  ModelState state;
  std::shared_ptr<Service> service;  // while it is loaded
  int users = 0;
  int attempts = 0;  // to load it, that have ended
  Clock::time_point last_used;
};

}  // namespace

struct Models::Shared : std::enable_shared_from_this<Models::Shared> {
  struct Lease;

  void add(NamedModel model);
  Entry* find(std::string_view name);
  std::shared_ptr<Service> get(std::string_view name, Wait wait);
  std::shared_ptr<Service> load(Entry& entry, std::unique_lock<std::mutex>& lock);
  std::shared_ptr<Service> lease(Entry& entry);
  uint64_t room() const;
  void sweep();
  void stop();

  ModelsOptions options;
  std::shared_ptr<ThreadPool> pool;
  std::mutex loading;  // one at a time: the next one counts what the last one took

  mutable std::mutex mutex;  // of all that follows; held for moments
  std::condition_variable changed;
  std::deque<Entry> entries;
  bool over = false;
  std::thread sweeper;
};

struct Models::Shared::Lease {
  Lease(std::shared_ptr<Shared> of, Entry& which)
      : shared(std::move(of)), entry(which), service(which.service) {
    ++entry.users;
  }
  ~Lease() {
    const std::lock_guard lock(shared->mutex);
    service.reset();  // not the last one: see above
    if (--entry.users > 0) return;
    entry.last_used = Clock::now();
    shared->changed.notify_all();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::shared_ptr<Shared> shared;
  Entry& entry;
  std::shared_ptr<Service> service;
};

void Models::Shared::add(NamedModel model) {
  const gguf::Reader file = open_file(model.options);
  const model::Config config =
      take(model::check_model(file, std::max<int64_t>(model.options.context, 0), Log{}));
  ModelState state{.name = model.name, .aliases = model.aliases};
  state.context = context_of(config, model.options);
  state.created = created(model.options);
  state.embeddings = model.how.embeddings || !pooling_of(file).empty();
  state.chat = !model.options.chat_template.empty() || file.metadata().find("tokenizer.chat_template");
  if (!model.options.pool) {
    model.options.pool = pool;
    model.options.threads = 0;
  }
  entries.push_back({.model = std::move(model), .state = std::move(state)});
}

Entry* Models::Shared::find(std::string_view name) {
  const auto answers = [&](const Entry& e) {
    return e.model.name == name || std::ranges::find(e.model.aliases, name) != e.model.aliases.end();
  };
  const auto found = std::ranges::find_if(entries, answers);
  return found == entries.end() ? nullptr : &*found;
}

std::shared_ptr<Service> Models::Shared::get(std::string_view name, Wait wait) {
  std::unique_lock lock(mutex);
  Entry* const entry = find(name);
  if (!entry) fail(Code::kNotFound, "[api] no model has this name");
  const int attempts = entry->attempts;
  while (!over && entry->state.state == State::kLoading) {
    if (wait == Wait::kNot) fail(Code::kBusy, "[api] the model \"{}\" is being loaded", entry->model.name);
    changed.wait(lock);
  }
  if (over) fail(Code::kBusy, "[api] the models are being closed");
  if (entry->state.state == State::kLoaded) return lease(*entry);
  // Who has waited for an attempt that failed does not make the next one.
  if (entry->attempts != attempts && entry->state.fault) throw Error(*entry->state.fault);
  return load(*entry, lock);
}

std::shared_ptr<Service> Models::Shared::load(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.state.state = State::kLoading;
  lock.unlock();
  Result<std::unique_ptr<Service>> opened = guard([&] {
    const std::lock_guard alone(loading);
    ServiceOptions how = entry.model.how;
    if (how.memory == 0) how.memory = room();
    return take(Service::open(entry.model.options, how));
  });
  lock.lock();
  ++entry.attempts;
  changed.notify_all();
  entry.state.state = State::kUnloaded;
  entry.state.fault.reset();
  if (!opened) {
    entry.state.fault = opened.error();
    throw std::move(opened.error());
  }
  if (over) {
    lock.unlock();
    opened->reset();
    fail(Code::kBusy, "[api] the models are being closed");
  }
  entry.service = std::move(*opened);
  entry.state.state = State::kLoaded;
  entry.state.context = entry.service->info().context;
  entry.state.host_bytes = entry.service->info().host_bytes;
  return lease(entry);
}

std::shared_ptr<Service> Models::Shared::lease(Entry& entry) {
  auto held = std::make_shared<Lease>(shared_from_this(), entry);
  Service* const service = held->service.get();
  return {std::move(held), service};
}

// Bytes of the host that the next model may take. What others have been given counts as taken, whether they
// have touched it yet or not.
uint64_t Models::Shared::room() const {
  const HostMemory host = host_memory();
  const uint64_t most = options.memory > 0 ? options.memory : host.limit.value_or(host.total);
  uint64_t given = 0;
  const std::lock_guard lock(mutex);
  for (const Entry& e : entries) given += e.service ? e.state.host_bytes : 0;
  const uint64_t left = most > given ? most - given : 1;
  return options.memory > 0 ? left : std::min(left, std::max<uint64_t>(host.usable(), 1));
}

// Unloads what nobody has used for `idle`, and sleeps until that can be.
void Models::Shared::sweep() {
  std::unique_lock lock(mutex);
  while (!over) {
    Entry* oldest = nullptr;
    for (Entry& e : entries)
      if (e.service && e.users == 0 && (!oldest || e.last_used < oldest->last_used)) oldest = &e;
    if (!oldest) {
      changed.wait(lock);
    } else if (const auto end = oldest->last_used + options.idle; Clock::now() < end) {
      changed.wait_until(lock, end);
    } else {
      oldest->state.state = State::kLoading;  // who wants it now waits until it is gone
      std::shared_ptr<Service> service = std::move(oldest->service);
      lock.unlock();
      service.reset();
      lock.lock();
      oldest->state.state = State::kUnloaded;
      changed.notify_all();
    }
  }
}

void Models::Shared::stop() {
  std::vector<std::shared_ptr<Service>> services;
  {
    const std::lock_guard lock(mutex);
    over = true;
    for (const Entry& e : entries)
      if (e.service) services.push_back(e.service);
  }
  changed.notify_all();
  for (const auto& service : services) service->stop();
}

Models::Models(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

Models::~Models() {
  stop();
  if (shared_->sweeper.joinable()) shared_->sweeper.join();
}

Result<std::unique_ptr<Models>> Models::open(std::vector<NamedModel> models, const ModelsOptions& options) {
  return guard([&] {
    std::set<std::string_view> names;
    const auto check = [&](const std::string& name) {
      if (name.empty()) fail(Code::kUsage, "[api] a model without a name");
      if (!names.insert(name).second) fail(Code::kUsage, "[api] two models are called \"{}\"", name);
    };
    for (const NamedModel& m : models) {
      check(m.name);
      for (const std::string& alias : m.aliases) check(alias);
    }
    auto shared = std::make_shared<Shared>();
    shared->options = options;
    const int allowed = cpu_limits().threads();
    shared->pool = std::make_shared<ThreadPool>(options.threads > 0 ? options.threads : allowed, allowed);
    for (NamedModel& m : models) shared->add(std::move(m));
    if (options.idle > Clock::duration::zero()) shared->sweeper = std::thread([&s = *shared] { s.sweep(); });
    return std::unique_ptr<Models>(new Models(std::move(shared)));
  });
}

Result<std::shared_ptr<Service>> Models::get(std::string_view name, Wait wait) {
  return guard([&] { return shared_->get(name, wait); });
}

std::vector<ModelState> Models::list() const {
  const std::lock_guard lock(shared_->mutex);
  std::vector<ModelState> states;
  for (const Entry& e : shared_->entries) states.push_back(e.state);
  return states;
}

std::vector<std::pair<std::string, std::shared_ptr<Service>>> Models::loaded() const {
  const std::lock_guard lock(shared_->mutex);
  std::vector<std::pair<std::string, std::shared_ptr<Service>>> services;
  for (const Entry& e : shared_->entries)
    if (e.service) services.emplace_back(e.model.name, e.service);
  return services;
}

void Models::stop() { shared_->stop(); }

}  // namespace juno::api
