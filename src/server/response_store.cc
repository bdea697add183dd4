// SPDX-License-Identifier: Apache-2.0
#include "server/response_store.h"

namespace juno::server {

void ResponseStore::keep(const std::string& tenant, const std::string& id, Json messages) {
  const size_t bytes = to_text(messages).size();
  if (bytes > kMostBytes) return;
  const std::lock_guard lock(mutex_);
  kept_.push_back({tenant, id, std::make_shared<const Json>(std::move(messages)), bytes});
  by_id_[id] = std::prev(kept_.end());
  bytes_ += bytes;
  while (bytes_ > kMostBytes) {
    bytes_ -= kept_.front().bytes;
    by_id_.erase(kept_.front().id);
    kept_.pop_front();
  }
}

std::shared_ptr<const Json> ResponseStore::find(const std::string& tenant, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto at = by_id_.find(id);
  return at == by_id_.end() || at->second->tenant != tenant ? nullptr : at->second->messages;
}

}  // namespace juno::server
