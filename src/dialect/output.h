// SPDX-License-Identifier: Apache-2.0
// The pieces that a reader has found. A call may be tried: its pieces are kept back until it is known to be
// one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "dialect/dialect.h"

namespace juno::dialect {

class Output {
 public:
  void content(std::string_view text) { add(Piece::Kind::kContent, text); }
  void reasoning(std::string_view text) { add(Piece::Kind::kReasoning, text); }

  // A call is read from here on; streamed: what is found of it goes out at once.
  void begin_call(bool streamed);
  void call(std::string_view name) { add(Piece::Kind::kCall, name); }
  void arguments(std::string_view text);
  // The arguments so far.
  const std::string& arguments_text() const { return arguments_; }
  // Whether it was a call, or has gone out as one already.
  bool end_call(bool is_one);

  int calls() const { return calls_; }
  std::vector<Piece> take();

 private:
  void add(Piece::Kind kind, std::string_view text);

  std::vector<Piece> pieces_;
  size_t begin_ = 0;  // of the call that is tried
  bool held_ = false, named_ = false;
  std::string arguments_;
  int calls_ = 0;
};

}  // namespace juno::dialect
