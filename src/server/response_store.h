// SPDX-License-Identifier: Apache-2.0
// Conversations of /v1/responses that a later request may continue (--store-responses). In memory alone: the
// oldest go when there are too many, all go with the process.
#pragma once
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/json.h"

namespace juno::server {

class ResponseStore {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;

  // messages: in the form of chat completions. One that is larger than the whole store is not kept.
  void keep(const std::string& tenant, const std::string& id, Json messages);
  // Null where it is none of this tenant's.
  std::shared_ptr<const Json> find(const std::string& tenant, const std::string& id) const;

 private:
  struct Kept {
    std::string tenant, id;
    std::shared_ptr<const Json> messages;
    size_t bytes;
  };

  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // the oldest first
  std::map<std::string, std::list<Kept>::iterator> by_id_;
  size_t bytes_ = 0;
};

}  // namespace juno::server
