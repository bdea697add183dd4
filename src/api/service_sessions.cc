// SPDX-License-Identifier: Apache-2.0
#include "api/service_sessions.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace juno::api {
namespace {

[[noreturn]] void unknown(std::string_view session) {
  fail(Code::kNotFound, "[api] there is no session \"{}\"", session);
}

}  // namespace

void Sessions::use(const std::string& tenant, const std::string& session) {
  const auto [owner, is_new] = owners_.try_emplace(session, Owner{tenant, {}});
  if (owner->second.tenant != tenant) unknown(session);
  owner->second.used = Clock::now();
  if (owners_.size() <= kMost) return;
  end(std::min_element(owners_.begin(), owners_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

void Sessions::end(std::string_view tenant, std::string_view session) {
  const auto owner = owners_.find(session);
  if (owner == owners_.end() || owner->second.tenant != tenant) unknown(session);
  end(owner);
}

void Sessions::end(Owners::iterator owner) {
  ended_.push_back(owner->first);
  owners_.erase(owner);
}

void Sessions::settle(const std::string& session) noexcept {
  if (session.empty()) return;
  if (const auto owner = owners_.find(session); owner != owners_.end()) {
    owner->second.used = Clock::now();
    return;
  }
  try {
    ended_.push_back(session);
  } catch (const std::bad_alloc&) {
    return;
  }
}

std::vector<std::pair<std::string, double>> Sessions::of(std::string_view tenant) const {
  std::vector<std::pair<std::string, double>> out;
  const auto now = Clock::now();
  for (const auto& [name, owner] : owners_)
    if (owner.tenant == tenant)
      out.emplace_back(name, std::chrono::duration<double>(now - owner.used).count());
  return out;
}

}  // namespace juno::api
