// SPDX-License-Identifier: Apache-2.0
#include "dialect/output.h"

#include <iterator>
#include <utility>

namespace juno::dialect {

void Output::begin_call(bool streamed) {
  begin_ = pieces_.size();
  held_ = !streamed;
  named_ = false;
  arguments_.clear();
}

void Output::arguments(std::string_view text) {
  arguments_ += text;
  add(Piece::Kind::kArguments, text);
}

bool Output::end_call(bool is_one) {
  is_one |= !held_ && named_;
  if (is_one) {
    ++calls_;
  } else {
    pieces_.resize(begin_);
  }
  held_ = false;
  return is_one;
}

std::vector<Piece> Output::take() {
  if (!held_) return std::exchange(pieces_, {});
  const auto begin = pieces_.begin() + static_cast<ptrdiff_t>(begin_);
  std::vector<Piece> found(std::make_move_iterator(pieces_.begin()), std::make_move_iterator(begin));
  pieces_.erase(pieces_.begin(), begin);
  begin_ = 0;
  return found;
}

void Output::add(Piece::Kind kind, std::string_view text) {
  const bool of_call = kind == Piece::Kind::kCall || kind == Piece::Kind::kArguments;
  const int call = of_call ? calls_ : 0;
  named_ |= kind == Piece::Kind::kCall;
  if (text.empty()) return;
  const bool joins = kind != Piece::Kind::kCall && pieces_.size() > (held_ ? begin_ : 0) &&
                     pieces_.back().kind == kind && pieces_.back().call == call;
  if (!joins) {
    pieces_.push_back({kind, std::string(text), call});
  } else {
    pieces_.back().text += text;
  }
}

}  // namespace juno::dialect
