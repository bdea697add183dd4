// SPDX-License-Identifier: Apache-2.0
// Several models in one process, each known by a name and aliases. They share the CPU's threads, are loaded
// when they are first wanted, and unloaded when nobody has wanted them for a while.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/service.h"

namespace juno::api {

struct NamedModel {
  std::string name;  // what requests call it: not empty; it is never taken for a path
  std::vector<std::string> aliases;
  SessionOptions options;  // without a pool: that of all is used, whatever threads it asks for
  ServiceOptions how;
};

struct ModelsOptions {
  int threads = 0;                             // of all models together; 0: as many as this process may use
  std::chrono::steady_clock::duration idle{};  // unloaded after so long without a user; 0: never
  uint64_t memory = 0;                         // bytes of the host for all of them; 0: what is free
};

struct ModelState {
  enum class State { kUnloaded, kLoading, kLoaded };

  std::string name;
  std::vector<std::string> aliases;
  State state = State::kUnloaded;
  int64_t context = 0;  // positions of one request
  int64_t created = 0;  // of the file: seconds since 1970; of one in memory: when this program started it
  bool embeddings = false;
  bool chat = false;  // it has a chat template
  uint64_t host_bytes =
      0;  // that it takes of the host: the file's weights, keys and values, work; 0: unknown
  std::optional<Error> fault;  // of the last attempt to load it
};

// Any thread.
class Models {
 public:
  // Reads what each file says of itself; loads nothing. kUsage for a name twice or none, and what
  // Service::open() says of a file.
  static Result<std::unique_ptr<Models>> open(std::vector<NamedModel> models, const ModelsOptions& options);
  ~Models();  // stop()

  enum class Wait { kForLoad, kNot };

  // The model of this name or alias, which stays loaded while the pointer is held. Loads it on the caller's
  // thread; when another one loads it already, waits, or says kBusy with Wait::kNot. kNotFound for a name
  // that is none, kDevice when it needs more memory than there is (both numbers), kBusy after stop().
  Result<std::shared_ptr<Service>> get(std::string_view name, Wait wait = Wait::kForLoad);

  // In the order of open(); waits for no load.
  std::vector<ModelState> list() const;
  // Those that are loaded now, for /metrics; holding them does not count as use for long.
  std::vector<std::pair<std::string, std::shared_ptr<Service>>> loaded() const;

  // Ends all requests with kCancelled; get() fails from now on.
  void stop();

 private:
  struct Shared;
  explicit Models(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace juno::api
