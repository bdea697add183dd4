// SPDX-License-Identifier: Apache-2.0
// Whose session is whose, and which ones the engine is to forget.
#pragma once
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace juno::api {

// A name belongs to the tenant that used it first, until it ends. Of more than kMost the one that was not
// used for longest ends.
class Sessions {
 public:
  static constexpr size_t kMost = 4096;

  // Throws kNotFound when the session is another tenant's.
  void use(const std::string& tenant, const std::string& session);
  // Throws kNotFound when the tenant has none of this name.
  void end(std::string_view tenant, std::string_view session);
  // A request of it is done: if the session has ended meanwhile, what the request left is forgotten too.
  // Without memory to note that, it stays until others want its pages.
  void settle(const std::string& session) noexcept;

  // [(name, seconds since a request of it began or ended)] of the tenant, by name.
  std::vector<std::pair<std::string, double>> of(std::string_view tenant) const;

  int64_t count() const { return static_cast<int64_t>(owners_.size()); }
  bool any_ended() const { return !ended_.empty(); }
  std::list<std::string> take_ended() { return std::exchange(ended_, {}); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Owner {
    std::string tenant;
    Clock::time_point used;
  };
  using Owners = std::map<std::string, Owner, std::less<>>;

  void end(Owners::iterator owner);

  Owners owners_;
  std::list<std::string> ended_;
};

}  // namespace juno::api
