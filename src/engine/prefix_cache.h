// SPDX-License-Identifier: Apache-2.0
// What sequences have computed, kept for those that begin alike: a tree of pages, found by the tokens in
// them.
#pragma once
#include <list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/sequence.h"

namespace juno::engine {

// A page is known by the salt and all tokens from position 0 to its last one, which are compared
// themselves: nothing can serve a wrong page. Whole pages are shared; the first that differs from what is
// wanted is copied as far as it agrees. Pages that nobody else holds are given up when they are wanted, the
// longest unused first, those of a session last.
class PrefixCache {
 public:
  // The pool outlives the cache.
  explicit PrefixCache(KvPool& pool);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // Gives a sequence without pages those for all its tokens, and says in `stored` how many of the tokens are
  // in them already. False, and nothing done, when that would leave fewer than `spare` pages to be had.
  bool open(Sequence& s, int spare);

  // Keeps what the sequence has stored, under its salt and session, as far as there is memory to note it
  // down. Where the cache knows a page already the sequence gets that one for its own.
  void publish(Sequence& s);

  // Appends free pages to `to`, having given up what it takes; false, and nothing appended, when there are
  // too few.
  bool acquire(int count, std::vector<int32_t>& to);

  // Keeps what is known of `tokens` under another salt too, in pages of its own; returns how many tokens. An
  // error when too few pages are free.
  Result<int64_t> clone(std::span<const int32_t> tokens, const std::string& from, const std::string& to);

  // Forgets the pages of `tokens` that begin at `from` or later, where nobody else needs them.
  void trim(const std::string& salt, std::span<const int32_t> tokens, int64_t from);

  // The session's pages are like all others from now on.
  void unpin(const std::string& session);
  // The same, and what only the session needed is forgotten.
  void end_session(const std::string& session);

  // Pages that nobody else holds.
  int idle_pages() const;
  size_t sessions() const { return sessions_.size(); }
  int64_t session_tokens(const std::string& session) const;  // that are kept for it
  // Appends the pages that it holds.
  void held(std::vector<int32_t>& pages) const;

 private:
  struct Node;
  struct Order {
    using is_transparent = void;
    bool operator()(const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) const;
    bool operator()(const std::unique_ptr<Node>& a, std::span<const int32_t> b) const;
    bool operator()(std::span<const int32_t> a, const std::unique_ptr<Node>& b) const;
  };
  struct Near {
    Node* node = nullptr;
    size_t common = 0;  // tokens, from its first
  };

  Node* find_root(const std::string& salt);
  Node& root(const std::string& salt);
  static Near closest(Node& parent, std::span<const int32_t> tokens);
  Node* put(Node& parent, std::span<const int32_t> tokens, int32_t& page);
  int32_t own(Node& node);
  bool idle(const Node& node) const;
  void give_up(int wanted);
  void touch(Node& node);
  void pin(const std::string& session, Node& leaf);
  void trim(Node& leaf, int64_t from);
  void erase(Node& node);

  KvPool& pool_;
  std::map<std::string, std::unique_ptr<Node>> roots_;  // of each salt
  // All nodes, the longest unused first. Who uses a node uses its parents, which stand behind it.
  std::list<Node*> used_;
  std::map<std::string, Node*> sessions_;  // the last node of each
};

}  // namespace juno::engine
