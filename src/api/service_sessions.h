// SPDX-License-Identifier: Apache-2.0
// Whose session is whose, and which ones the engine is to forget.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

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

  int64_t count() const { return static_cast<int64_t>(owners_.size()); }
  bool any_ended() const { return !ended_.empty(); }
  std::list<std::string> take_ended() { return std::exchange(ended_, {}); }

 private:
  struct Owner {
    std::string tenant;
    int64_t used = 0;  // the clock_ of the last use
  };
  using Owners = std::map<std::string, Owner, std::less<>>;

  void end(Owners::iterator owner);

  Owners owners_;
  std::list<std::string> ended_;
  int64_t clock_ = 0;
};

}  // namespace juno::api
