// SPDX-License-Identifier: Apache-2.0
// What a grammar compiles to: an automaton over bytes with calls (nesting) and counted loops, so that neither
// depth nor a large repetition costs memory here.
#pragma once
#include <bitset>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace juno::grammar {

using Bytes = std::bitset<256>;
using NodeId = int32_t;

inline constexpr int32_t kUnlimited = -1;

struct Node {
  enum class Kind : uint8_t {
    kBytes,   // one byte of classes[a], then b
    kSplit,   // a or b
    kCall,    // rules[a], then b
    kLoop,    // the body at a, min to max times, then b
    kReturn,  // the end of a rule or of a loop's body
  };
  Kind kind = Kind::kReturn;
  bool productive = false;  // some text leads from here to a return
  bool nullable = false;    // of a loop: its body may be empty
  int32_t a = -1, b = -1;
  int32_t min = 0, max = 0;
};

struct Automaton {
  std::vector<Node> nodes;
  std::vector<Bytes> classes;
  std::vector<NodeId> rules;  // where each begins; rule 0 is the whole text
};

// Builds from the end: each function takes what follows and returns where its part begins. Throws Error
// (Code::kBadData) when a grammar outgrows kMaxNodes.
class Builder {
 public:
  static constexpr size_t kMaxNodes = 1 << 20;

  Builder();

  NodeId end() const { return 0; }  // a return
  NodeId never() const { return 1; }
  NodeId bytes(const Bytes& which, NodeId next);
  NodeId literal(std::string_view text, NodeId next);
  NodeId either(NodeId a, NodeId b);
  NodeId call(int rule, NodeId next);
  // body(next) builds the part that repeats.
  using Part = std::function<NodeId(NodeId next)>;
  NodeId repeat(const Part& body, int32_t min, int32_t max, NodeId next);

  // A node whose meaning is given later, by settle(): for loops that repeat() cannot build.
  NodeId forward();
  void settle(NodeId forward, NodeId meaning) { automaton_.nodes[forward].a = meaning; }
  // A finished automaton as a rule of this one.
  int insert(const Automaton& part);

  int add_rule();  // to be defined later
  void define(int rule, NodeId start) { automaton_.rules[rule] = start; }
  bool defined(int rule) const { return automaton_.rules[rule] >= 0; }

  // Marks what can never end, so that matching never walks into it. Fails with a Fault when rule 0 allows no
  // text at all, or when a rule begins with itself.
  Automaton finish();

 private:
  NodeId add(const Node& node);
  int32_t class_of(const Bytes& which);
  void mark_productive();
  void mark_nullable();
  void refuse_left_recursion() const;
  template <class Test>
  void spread(std::vector<bool>& marks, Test&& test) const;

  Automaton automaton_;
  std::vector<bool> empty_;  // [nodes] a return can be reached without a byte
  std::unordered_map<Bytes, int32_t> class_ids_;
};

}  // namespace juno::grammar
