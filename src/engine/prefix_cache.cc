// SPDX-License-Identifier: Apache-2.0
// No node's tokens begin another's among its siblings, so the one that has most in common with some tokens
// stands right before or behind them in the order of tokens.
#include "engine/prefix_cache.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace juno::engine {
namespace {

constexpr size_t kPage = ops::kPagePositions;

// Those of the tokens that page `index` holds.
std::span<const int32_t> page_of(std::span<const int32_t> tokens, size_t index) {
  const size_t first = std::min(index * kPage, tokens.size());
  return tokens.subspan(first, std::min(kPage, tokens.size() - first));
}

// The tokens of a sequence that need not be computed if they are known: the last one does, and each whose
// logits or hidden state is wanted.
std::span<const int32_t> reusable(const Sequence& s) {
  const Request& r = s.request;
  auto most = static_cast<int64_t>(s.tokens.size()) - 1;
  if (r.on_hidden) most = std::min(most, s.next_hidden);
  if (r.reuse >= 0) most = std::min(most, r.reuse);
  if (s.next_logits < r.logits_at.size()) most = std::min(most, r.logits_at[s.next_logits]);
  return std::span(s.tokens).first(static_cast<size_t>(most));
}

}  // namespace

struct PrefixCache::Node {
  Node* parent = nullptr;       // null: the root of a salt, which has neither tokens nor page
  std::vector<int32_t> tokens;  // of its page; fewer than fill it only without children
  int32_t page = -1;
  int64_t first = 0;  // position
  int sessions = 0;   // that end in it or below
  std::set<std::unique_ptr<Node>, Order> children;
  std::list<Node*>::iterator used;
};

bool PrefixCache::Order::operator()(const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) const {
  return a->tokens < b->tokens;
}
bool PrefixCache::Order::operator()(const std::unique_ptr<Node>& a, std::span<const int32_t> b) const {
  return std::ranges::lexicographical_compare(a->tokens, b);
}
bool PrefixCache::Order::operator()(std::span<const int32_t> a, const std::unique_ptr<Node>& b) const {
  return std::ranges::lexicographical_compare(a, b->tokens);
}

PrefixCache::PrefixCache(KvPool& pool) : pool_(pool) {}

PrefixCache::~PrefixCache() {
  while (!used_.empty()) erase(*used_.front());
}

bool PrefixCache::open(Sequence& s, int spare) {
  const auto tokens = reusable(s);
  Near near{find_root(s.request.salt), kPage};
  Node* last = near.node;
  while (last) {
    near = closest(*last, page_of(tokens, s.pages.size()));
    if (near.common < kPage) break;
    last = near.node;
    pool_.hold(last->page);
    s.pages.push_back(last->page);
  }
  const int wanted =
      KvPool::pages_for(static_cast<int64_t>(s.tokens.size())) - static_cast<int>(s.pages.size());
  if (pool_.free() + idle_pages() < wanted + spare) {
    pool_.release(s.pages);
    return false;
  }
  s.stored = static_cast<int64_t>(s.pages.size() * kPage);
  if (last) touch(near.common > 0 ? *near.node : *last);
  if (last && near.common > 0) {
    s.stored += static_cast<int64_t>(near.common);
    s.pages.push_back(own(*near.node));
  }
  return acquire(KvPool::pages_for(static_cast<int64_t>(s.tokens.size())) - static_cast<int>(s.pages.size()),
                 s.pages);
}

void PrefixCache::publish(Sequence& s) {
  if (s.stored == 0) return;
  const auto tokens = std::span(s.tokens).first(static_cast<size_t>(s.stored));
  try {
    Node* node = &root(s.request.salt);
    for (size_t i = 0; i * kPage < tokens.size(); ++i) node = put(*node, page_of(tokens, i), s.pages[i]);
    touch(*node);
    if (!s.request.session.empty()) pin(s.request.session, *node);
  } catch (const std::bad_alloc&) {
    return;
  }
}

bool PrefixCache::acquire(int count, std::vector<int32_t>& to) {
  if (pool_.free() < count) give_up(count);
  return pool_.acquire(count, to);
}

Result<int64_t> PrefixCache::clone(std::span<const int32_t> tokens, const std::string& from,
                                   const std::string& to) {
  return guard([&] {
    int64_t cloned = 0;
    Node* source = from == to ? nullptr : find_root(from);
    for (Node* target = source ? &root(to) : nullptr; source;) {
      const Near near = closest(*source, page_of(tokens, static_cast<size_t>(cloned) / kPage));
      if (near.common == 0) break;
      std::vector<int32_t> page;
      if (!pool_.acquire(1, page)) fail(Code::kBusy, "[engine] no page is free for a copy");
      pool_.copy(near.node->page, page[0]);
      target = put(*target, std::span(near.node->tokens).first(near.common), page[0]);
      pool_.release(page);
      touch(*target);
      cloned += static_cast<int64_t>(near.common);
      source = near.common == kPage ? near.node : nullptr;
    }
    return cloned;
  });
}

void PrefixCache::trim(const std::string& salt, std::span<const int32_t> tokens, int64_t from) {
  Node* leaf = find_root(salt);
  for (size_t i = 0; leaf; ++i) {
    const auto part = page_of(tokens, i);
    const Near near = closest(*leaf, part);
    if (near.common == 0 || near.common < std::min(part.size(), near.node->tokens.size())) break;
    leaf = near.node;
  }
  if (leaf) trim(*leaf, from);
}

void PrefixCache::trim(Node& leaf, int64_t from) {
  for (Node* node = &leaf;
       node->parent && node->first >= from && node->children.empty() && node->sessions == 0 && idle(*node);) {
    Node* const parent = node->parent;
    const bool ends = !parent->parent;  // a root goes with its last child
    erase(*node);
    if (ends) return;
    node = parent;
  }
}

void PrefixCache::unpin(const std::string& session) {
  const auto at = sessions_.find(session);
  if (at == sessions_.end()) return;
  for (Node* n = at->second; n->parent; n = n->parent) --n->sessions;
  sessions_.erase(at);
}

int64_t PrefixCache::session_tokens(const std::string& session) const {
  const auto at = sessions_.find(session);
  if (at == sessions_.end()) return 0;
  return at->second->first + static_cast<int64_t>(at->second->tokens.size());
}

void PrefixCache::end_session(const std::string& session) {
  const auto at = sessions_.find(session);
  if (at == sessions_.end()) return;
  Node& leaf = *at->second;
  unpin(session);
  trim(leaf, 0);
}

int PrefixCache::idle_pages() const {
  return static_cast<int>(std::ranges::count_if(used_, [&](const Node* n) { return idle(*n); }));
}

void PrefixCache::held(std::vector<int32_t>& pages) const {
  for (const Node* n : used_) pages.push_back(n->page);
}

PrefixCache::Node* PrefixCache::find_root(const std::string& salt) {
  const auto at = roots_.find(salt);
  return at == roots_.end() ? nullptr : at->second.get();
}

PrefixCache::Node& PrefixCache::root(const std::string& salt) {
  auto& root = roots_[salt];
  if (!root) root = std::make_unique<Node>();
  return *root;
}

PrefixCache::Near PrefixCache::closest(Node& parent, std::span<const int32_t> tokens) {
  Near best;
  const auto consider = [&](const std::unique_ptr<Node>& node) {
    const auto end = std::ranges::mismatch(node->tokens, tokens).in1;
    const auto common = static_cast<size_t>(end - node->tokens.begin());
    if (common > best.common) best = {node.get(), common};
  };
  const auto behind = parent.children.lower_bound(tokens);
  if (behind != parent.children.end()) consider(*behind);
  if (behind != parent.children.begin()) consider(*std::prev(behind));
  return best;
}

// The child that holds `tokens` and perhaps more. It takes `page` when it is new or grows; else a sequence
// whose page is whole gets the child's.
PrefixCache::Node* PrefixCache::put(Node& parent, std::span<const int32_t> tokens, int32_t& page) {
  const Near near = closest(parent, tokens);
  if (near.common == tokens.size()) {
    if (tokens.size() < kPage || page == near.node->page) return near.node;
    pool_.hold(near.node->page);
    pool_.release(page);
    page = near.node->page;
    return near.node;
  }
  if (near.node && near.common == near.node->tokens.size()) {
    pool_.hold(page);
    auto grown = parent.children.extract(parent.children.find(near.node->tokens));
    near.node->tokens.assign(tokens.begin(), tokens.end());
    pool_.release(std::exchange(near.node->page, page));
    parent.children.insert(std::move(grown));
    return near.node;
  }
  auto node = std::make_unique<Node>();
  node->parent = &parent;
  node->tokens.reserve(kPage);  // to grow without asking for memory
  node->tokens.assign(tokens.begin(), tokens.end());
  node->page = page;
  node->first = parent.parent ? parent.first + static_cast<int64_t>(kPage) : 0;
  std::list<Node*> use{node.get()};
  Node* const made = parent.children.insert(std::move(node)).first->get();
  made->used = use.begin();  // from here on nothing can fail
  used_.splice(parent.parent ? parent.used : used_.end(), use);
  pool_.hold(page);
  return made;
}

// A page for a writer with what the node's page holds: a copy, or the page itself when no other is to be
// had.
int32_t PrefixCache::own(Node& node) {
  int32_t page = node.page;
  std::vector<int32_t> copy;
  copy.reserve(1);
  pool_.hold(page);  // it is not given up for its own copy
  if (acquire(1, copy)) {
    const Result<void> copied = guard([&] { pool_.copy(page, copy[0]); });
    pool_.release(page);
    if (!copied) pool_.release(copy);
    take(Result<void>(copied));
    page = copy[0];
  } else {
    erase(node);
  }
  return page;
}

bool PrefixCache::idle(const Node& node) const { return pool_.holders(node.page) == 1; }

// Until `wanted` pages are free. Children stand before their parents, so one pass meets all that can go.
void PrefixCache::give_up(int wanted) {
  for (bool theirs : {false, true}) {
    for (auto at = used_.begin(); at != used_.end() && pool_.free() < wanted;) {
      Node& node = **at++;
      if (node.children.empty() && idle(node) && (theirs || node.sessions == 0)) erase(node);
    }
  }
}

void PrefixCache::touch(Node& node) {
  for (Node* n = &node; n->parent; n = n->parent) used_.splice(used_.end(), used_, n->used);
}

void PrefixCache::pin(const std::string& session, Node& leaf) {
  const auto [at, is_new] = sessions_.try_emplace(session, &leaf);  // what can fail comes first
  for (Node* n = &leaf; n->parent; n = n->parent) ++n->sessions;
  for (Node* n = is_new ? nullptr : at->second; n && n->parent; n = n->parent) --n->sessions;
  at->second = &leaf;
}

void PrefixCache::erase(Node& node) {
  assert(node.children.empty() && "who uses a page uses all before it");
  Node* const parent = node.parent;
  if (node.sessions > 0) {
    for (auto& [name, last] : sessions_)
      if (last == &node) last = parent;
    if (!parent->parent) std::erase_if(sessions_, [&](const auto& s) { return s.second == parent; });
  }
  pool_.release(node.page);
  used_.erase(node.used);
  parent->children.erase(parent->children.find(node.tokens));
  if (!parent->parent && parent->children.empty())
    std::erase_if(roots_, [&](const auto& root) { return root.second.get() == parent; });
}

}  // namespace juno::engine
