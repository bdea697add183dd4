// SPDX-License-Identifier: Apache-2.0
#include "grammar/json_schema.h"

#include <algorithm>
#include <deque>
#include <map>

#include "grammar/chars.h"
#include "grammar/fault.h"
#include "grammar/matcher.h"
#include "grammar/pattern.h"
#include "grammar/schema_parts.h"
#include "grammar/syntax.h"

namespace juno::grammar {
namespace {

constexpr int kMaxRules = 100000;
constexpr int kMaxValueDepth = 64;
constexpr int kMaxNesting = 4000;  // what walks through values calls itself

// Words by their beginnings.
template <class Symbol>
class Tree {
 public:
  struct Branch {
    std::map<Symbol, size_t> next;
    bool ends = false;  // a word ends here
  };

  // The branch of `symbol` after branch `at`; 0 is the empty word.
  size_t next(size_t at, Symbol symbol) {
    const auto [found, is_new] = branches_[at].next.try_emplace(symbol, branches_.size());
    const size_t to = found->second;
    if (is_new) branches_.emplace_back();
    return to;
  }
  void end(size_t at) { branches_[at].ends = true; }

  // node(branch, built) for each branch, after those that follow it; `built` is theirs, by branch.
  template <class Node>
  NodeId build(Node&& node) const {
    std::vector<NodeId> built(branches_.size());
    for (size_t i = branches_.size(); i-- > 0;) built[i] = node(branches_[i], built);
    return built[0];
  }

 private:
  std::vector<Branch> branches_{1};
};

class Compiler {
 public:
  explicit Compiler(const SchemaDocument& document) : document_(document) {}

  Automaton run(const Places& places) {
    rule_of(places);
    for (; !waiting_.empty(); waiting_.pop_front()) {
      const auto& [rule, all_of] = waiting_.front();
      to_.define(rule, value(all_of));
    }
    try {
      return to_.finish();
    } catch (const Fault& fault) {
      refuse(true, "$ref", places[0].pointer, "and the alternatives around it allow no finite value");
    }
  }

 private:
  using Key = std::vector<std::pair<std::string, uint8_t>>;

  // The rule of a value that satisfies all places, written later.
  int rule_of(const Places& places) {
    Key key;
    for (const Place& p : places) key.push_back(p.key());
    std::sort(key.begin(), key.end());
    key.erase(std::unique(key.begin(), key.end()), key.end());
    const auto [found, is_new] = rules_.try_emplace(std::move(key), -1);
    if (is_new) {
      if (rules_.size() > kMaxRules)
        refuse(false, "anyOf", places.empty() ? "" : places[0].pointer, "has more than 100000 combinations");
      found->second = to_.add_rule();
      waiting_.emplace_back(found->second, places);
    }
    return found->second;
  }

  NodeId value(const Places& all_of) {
    const Parts parts = document_.parts(all_of);
    if (parts.choice) return choice(parts);
    if (parts.values) return enumeration(parts);
    NodeId any = to_.never();
    const auto may_be = [&](uint8_t type) { return (parts.types & type) != 0; };
    if (may_be(kObject)) any = to_.either(object(parts), any);
    if (may_be(kArray)) any = to_.either(array(parts), any);
    if (may_be(kString)) any = to_.either(string(parts), any);
    if (may_be(kInteger | kNumber)) any = to_.either(json_number(to_, parts.numbers, to_.end()), any);
    if (may_be(kBoolean))
      any = to_.either(to_.literal("true", to_.end()), to_.either(to_.literal("false", to_.end()), any));
    if (may_be(kNull)) any = to_.either(to_.literal("null", to_.end()), any);
    return any;
  }

  // One rule for each alternative, with everything else that must hold.
  NodeId choice(const Parts& parts) {
    const auto& [at, alternatives] = *parts.choice;
    const char* const keyword = parts.choice_kind == Place::kAnyOf ? "anyOf" : "oneOf";
    if (parts.choice_kind == Place::kOneOf) require_disjoint(at, *alternatives);
    const Place list = document_.child(at, keyword, *alternatives);
    NodeId any = to_.never();
    for (size_t i = alternatives->size(); i-- > 0;) {
      Places places;
      for (Place p : parts.all) {
        if (p.key() == at.key()) p.without |= parts.choice_kind;
        p.without |= Place::kExpanded;
        places.push_back(std::move(p));
      }
      places.push_back(document_.child(list, std::to_string(i), (*alternatives)[i]));
      any = to_.either(to_.call(rule_of(places), to_.end()), any);
    }
    return any;
  }

  void require_disjoint(const Place& at, const Json& alternatives) const {
    const Place list = document_.child(at, "oneOf", alternatives);
    std::vector<Parts> all;
    for (size_t i = 0; i < alternatives.size(); ++i)
      all.push_back(document_.parts({document_.child(list, std::to_string(i), alternatives[i])}));
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!disjoint(all[i], all[j]))
          refuse(false, "oneOf", at.pointer, "has alternatives that are not plainly different: use anyOf");
      }
    }
  }

  // Whether no value satisfies both, as far as types, values and tags of objects tell.
  bool disjoint(const Parts& a, const Parts& b) const {
    if (a.choice || b.choice) return false;
    if (a.values && b.values) {
      return std::none_of(a.values->begin(), a.values->end(), [&](const Json& v) {
        return std::find(b.values->begin(), b.values->end(), v) != b.values->end();
      });
    }
    const uint8_t types = a.types & b.types;
    if (types == 0) return true;
    if (types != kObject) return false;
    for (const auto& [name, places] : a.properties) {
      const auto same = std::find_if(b.properties.begin(), b.properties.end(),
                                     [&, &n = name](const auto& p) { return p.first == n; });
      if (same == b.properties.end() || !a.required.contains(name) || !b.required.contains(name)) continue;
      const Parts mine = document_.parts(places), theirs = document_.parts(same->second);
      if (mine.values && theirs.values && disjoint(mine, theirs)) return true;
    }
    return false;
  }

  static int depth(const Json& v, int allowed) {
    if (!v.is_structured() || allowed == 0) return 1;
    int deepest = 0;
    for (const Json& child : v) deepest = std::max(deepest, depth(child, allowed - 1));
    return deepest + 1;
  }

  // The texts of the values that satisfy what else is asked for, as a tree: many that begin alike cost
  // little.
  NodeId enumeration(const Parts& parts) {
    Places rest = parts.all;
    for (Place& p : rest) p.without |= Place::kEnum | Place::kExpanded;
    std::optional<Automaton> others;
    if (parts.constrained || parts.types != kAllTypes) others = Compiler(document_).run(rest);
    Tree<char> tree;
    for (const Json& v : *parts.values) {
      if (depth(v, kMaxValueDepth) > kMaxValueDepth)
        refuse(false, "enum", parts.all[0].pointer, "has a value nested deeper than 64");
      const std::string text = v.dump();
      if (others && !Matcher(*others).matches(text)) continue;
      size_t at = 0;
      for (char c : text) at = tree.next(at, c);
      tree.end(at);
    }
    return tree.build([&](const Tree<char>::Branch& branch, const std::vector<NodeId>& built) {
      NodeId any = branch.ends ? to_.end() : to_.never();
      for (const auto& [c, child] : branch.next)
        any = to_.either(to_.bytes(Bytes().set(static_cast<uint8_t>(c)), built[child]), any);
      return any;
    });
  }

  NodeId string(const Parts& parts) {
    const NodeId close = to_.literal("\"", to_.end());
    const bool bounded = parts.min_length > 0 || parts.max_length >= 0;
    if (parts.patterns.size() + bounded > 1)
      refuse(false, parts.patterns[0].second == parts.all[0].pointer ? "pattern" : "format",
             parts.patterns[0].second,
             "cannot be combined with another of pattern, format, minLength and maxLength");
    if (parts.patterns.empty()) {
      const auto character = [&](NodeId next) { return to_.call(any_char(), next); };
      return to_.literal("\"", to_.repeat(character, parts.min_length, parts.max_length, close));
    }
    const auto& [pattern, pointer] = parts.patterns[0];
    try {
      return to_.literal("\"", json_pattern(to_, pattern, close));
    } catch (const Error& e) {
      refuse(dynamic_cast<const Fault*>(&e) != nullptr, "pattern", pointer, fmt::format("has {}", e.message));
    }
  }

  NodeId array(const Parts& parts) {
    const NodeId close = blanks(to_.literal("]", to_.end()));
    const auto fixed = static_cast<int32_t>(parts.prefix.size());
    const auto item = [&](int32_t index, NodeId next) {
      return to_.call(rule_of(index < fixed ? parts.prefix[index] : parts.items), next);
    };
    const auto may_stop = [&](int32_t count) { return count >= parts.min_items ? close : to_.never(); };
    const auto left = [&](int32_t count) {
      return parts.max_items < 0 ? kUnlimited : std::max(0, parts.max_items - count);
    };
    // From the end: the items after the first and after the prefix, then those of the prefix.
    const int32_t before = std::max(fixed, 1);
    const auto another = [&](NodeId next) { return comma(item(before, next)); };
    NodeId rest = to_.repeat(another, std::max(0, parts.min_items - before), left(before), close);
    for (int32_t count = before; count-- > 0;) {
      NodeId more = to_.never();
      if (left(count) != 0) more = count == 0 ? blanks(item(0, rest)) : comma(item(count, rest));
      rest = to_.either(more, may_stop(count));
    }
    return to_.literal("[", rest);
  }

  NodeId object(const Parts& parts) {
    const NodeId close = blanks(to_.literal("}", to_.end()));
    NodeId none = close, some = close;  // what follows when no key was written yet, and when some were
    if (parts.open) {
      const int pair = extra_pair(parts);
      const auto another = [&](NodeId next) { return comma(to_.call(pair, next)); };
      some = to_.repeat(another, 0, kUnlimited, close);
      none = to_.either(blanks(to_.call(pair, some)), close);
    }
    for (auto property = parts.properties.rbegin(); property != parts.properties.rend(); ++property) {
      const auto& [name, places] = *property;
      const NodeId written = to_.literal(
          "\"", json_text(to_, name, to_.literal("\":", blanks(to_.call(rule_of(places), some)))));
      const bool required = parts.required.contains(name);
      none = to_.either(blanks(written), required ? to_.never() : none);
      some = to_.either(comma(written), required ? to_.never() : some);
    }
    return to_.literal("{", none);
  }

  // "key": value with a key that no property has.
  int extra_pair(const Parts& parts) {
    const NodeId after = to_.literal("\":", blanks(to_.call(rule_of(parts.additional), to_.end())));
    const auto character = [&](NodeId next) { return to_.call(any_char(), next); };
    const NodeId anything = to_.repeat(character, 0, kUnlimited, after);
    Tree<uint32_t> names;
    for (const auto& [name, places] : parts.properties) {
      size_t at = 0;
      for (Cursor in(name); !in.done();) at = names.next(at, in.character());
      names.end(at);
    }
    const NodeId key = names.build([&](const Tree<uint32_t>::Branch& branch,
                                       const std::vector<NodeId>& built) {
      Ranges taken;
      NodeId any = branch.ends ? to_.never() : after;
      for (const auto& [c, child] : branch.next) {
        taken.emplace_back(c, c);
        any = to_.either(json_char(to_, {{c, c}}, built[child]), any);
      }
      return to_.either(taken.empty() ? character(anything) : json_char(to_, all_but(taken), anything), any);
    });
    const int rule = to_.add_rule();
    to_.define(rule, to_.literal("\"", key));
    return rule;
  }

  int any_char() {
    if (any_char_ < 0) {
      any_char_ = to_.add_rule();
      to_.define(any_char_, json_char(to_, all_but({}), to_.end()));
    }
    return any_char_;
  }

  NodeId comma(NodeId next) { return to_.literal(",", blanks(next)); }

  // Nothing, one blank, or a new line and its indentation: enough to look like what models have seen, too
  // little to go on for ever.
  NodeId blanks(NodeId next) {
    if (blanks_ < 0) {
      const auto indent = [&](NodeId then) { return to_.bytes(Bytes().set(' ').set('\t'), then); };
      blanks_ = to_.add_rule();
      to_.define(blanks_, to_.either(to_.literal("\n", to_.repeat(indent, 0, 20, to_.end())),
                                     to_.either(to_.literal(" ", to_.end()), to_.end())));
    }
    return to_.call(blanks_, next);
  }

  const SchemaDocument& document_;
  Builder to_;
  std::map<Key, int> rules_;
  std::deque<std::pair<int, Places>> waiting_;
  int any_char_ = -1, blanks_ = -1;
};

// Brackets open at once, at most; those inside strings count, too, which only errs on the safe side.
int nesting(std::string_view text) {
  int open = 0, most = 0;
  for (char c : text) {
    open += (c == '[' || c == '{') - (c == ']' || c == '}');
    most = std::max(most, open);
  }
  return most;
}

}  // namespace

Automaton compile_json_schema(std::string_view text) {
  if (nesting(text) > kMaxNesting)
    refuse(false, "", "", fmt::format("is nested deeper than {}", kMaxNesting));
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object() && !root.is_boolean()) refuse(true, "", "", "is no JSON object, true or false");
  return compile_json_schema(root, "");
}

Automaton compile_json_schema(const Json& document, const std::string& pointer) {
  const SchemaDocument schemas(document);
  return Compiler(schemas).run({schemas.at(pointer)});
}

}  // namespace juno::grammar
