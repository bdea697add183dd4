// SPDX-License-Identifier: Apache-2.0
#include "api/service_reply.h"

#include "api/service_check.h"
#include "base/utf8.h"

namespace juno::api {
namespace {

const tokenizer::Tokenizer& demo_tokenizer() {
  static const std::unique_ptr<Session> session = open_session(kDemo);
  return session->tokenizer();
}

struct Told {
  std::string text;
  std::vector<std::string> pieces;
  std::vector<int32_t> ids;
  std::optional<std::string> stop;
};

void add(Told& told, std::optional<Delta> delta) {
  if (!delta) return;
  told.text += delta->text;
  told.pieces.push_back(delta->text);
  told.ids.insert(told.ids.end(), delta->ids.begin(), delta->ids.end());
  EXPECT_EQ(delta->scores.size(), delta->ids.size());
  for (size_t i = 0; i < delta->ids.size(); ++i) EXPECT_EQ(delta->scores[i].id, delta->ids[i]);
}

Told tell(const std::vector<int32_t>& ids, std::vector<std::string> stop, std::vector<int32_t> keep = {}) {
  Told told;
  ReplyPieces pieces(demo_tokenizer(), 0,
                     Work{.stop = std::move(stop), .keep_control = std::move(keep), .logprobs = 0});
  for (const int32_t id : ids) {
    TokenScore score;
    score.id = id;
    add(told, pieces.push(score));
    if (pieces.stopped()) break;
  }
  add(told, pieces.finish());
  told.stop = pieces.stop();
  return told;
}

// Tokens of one byte each, so that every character of more is cut.
std::vector<int32_t> bytes_of(const std::string& text) {
  std::vector<int32_t> ids;
  const auto& t = demo_tokenizer();
  for (const char c : text) {
    for (int32_t id = 0; id < t.size(); ++id) {
      if (!t.is_control(id) && t.piece(id) == std::string_view(&c, 1)) {
        ids.push_back(id);
        break;
      }
    }
  }
  EXPECT_EQ(ids.size(), text.size());
  return ids;
}

TEST(C19, NoPieceCutsACharacter) {
  const std::string text = "a \xF0\x9F\x98\x80\xC3\xA9 z\xE4\xB8\x96";
  const auto ids = bytes_of(text);
  const Told told = tell(ids, {});
  EXPECT_EQ(told.text, text);
  EXPECT_EQ(told.ids, ids) << "each token once, in order";
  for (const std::string& piece : told.pieces) {
    std::string_view rest = piece;
    while (!rest.empty()) {
      const Char c = first_char(rest);
      EXPECT_EQ(c.state, Char::State::kValid) << piece;
      rest.remove_prefix(c.size);
    }
    EXPECT_EQ(piece.find("\xEF\xBF\xBD"), std::string::npos);
  }
}

TEST(C20, BytesThatAreNoTextBecomeTheReplacementCharacter) {
  const auto ids = bytes_of("a\xFF\xC3z\xF0\x9F");
  const Told told = tell(ids, {});
  EXPECT_EQ(told.text, "a\xEF\xBF\xBD\xEF\xBF\xBDz\xEF\xBF\xBD");
  EXPECT_EQ(told.ids, ids);
}

TEST(C21, TheTextEndsRightBeforeTheFirstMatchWhereverTokensEnd) {
  const std::string text = "I am the demo \xC3\xA9t\xC3\xA9 model, the model of demo fame.";
  for (const std::vector<int32_t>& ids : {demo_tokenizer().encode(text), bytes_of(text)}) {
    const std::string decoded = tell(ids, {}).text;
    for (size_t at = 0; at < text.size(); ++at) {
      for (size_t size = 1; size <= 9 && at + size <= text.size(); ++size) {
        const std::string stop = text.substr(at, size);
        const size_t found = decoded.find(stop);
        if (found == std::string::npos) continue;  // half a character: no text of whole ones has it
        const Told told = tell(ids, {"nowhere", stop, stop + "!"});
        EXPECT_EQ(told.text, decoded.substr(0, found)) << stop;
        EXPECT_EQ(told.stop, stop);
        EXPECT_LE(told.ids.size(), ids.size());
      }
    }
  }
}

TEST(C21, OfSeveralStopStringsTheFirstInTheTextCounts) {
  const auto ids = bytes_of("one two three four");
  EXPECT_EQ(tell(ids, {"four", "three", "two three"}).text, "one ");
  EXPECT_EQ(tell(ids, {"tw", "two"}).stop, "tw");
  EXPECT_EQ(tell(ids, {"two", "tw"}).stop, "tw") << "it is complete first";
  EXPECT_EQ(tell(ids, {"o t"}).text, "one tw");
}

TEST(C21, WhatWasHeldBackAppearsWhenNoMatchComes) {
  const auto ids = bytes_of("ends in a par");
  const Told told = tell(ids, {"partial", "art"});
  EXPECT_EQ(told.text, "ends in a par");
  EXPECT_EQ(told.ids, ids);
  EXPECT_FALSE(told.stop);
}

TEST(C21, TokensGoWithTheirText) {
  // Of "abXY" with the stop string "XY" only a and b are told, each with its own text.
  const auto ids = bytes_of("abXY");
  const Told told = tell(ids, {"XY"});
  EXPECT_EQ(told.pieces, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(told.ids, (std::vector<int32_t>{ids[0], ids[1]}));
}

TEST(Service, ControlTokensAreTextOnlyWhereTheyAreKept) {
  const auto& t = demo_tokenizer();
  const int32_t marker = t.encode("<|im_start|>", {.parse_special = true})[0];
  ASSERT_TRUE(t.is_control(marker));
  auto ids = bytes_of("ab");
  ids.insert(ids.begin() + 1, marker);
  EXPECT_EQ(tell(ids, {}).text, "ab");
  EXPECT_EQ(tell(ids, {}, {marker}).text, "a<|im_start|>b");
  EXPECT_EQ(tell(ids, {}).ids, ids);
}

}  // namespace
}  // namespace juno::api
