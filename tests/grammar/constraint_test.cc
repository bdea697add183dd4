// SPDX-License-Identifier: Apache-2.0
#include "grammar/constraint.h"

#include <gtest/gtest.h>

#include "grammar/gbnf.h"
#include "grammar/json_schema.h"

namespace juno::grammar {
namespace {

const std::vector<std::string> kPieces = {"",    "{",  "}",  "\"",   "a",    "ab",   "abc", "\"a\"",
                                          ":",   "1",  "12", "-",    "\xc3", "\xa9", "é",   "\\",
                                          "\\n", "\n", " ",  "true", "\":",  "{\"",  "x"};

std::shared_ptr<const VocabularyBytes> vocabulary() {
  return std::make_shared<const VocabularyBytes>(static_cast<int32_t>(kPieces.size()),
                                                 [](int32_t id) { return kPieces[static_cast<size_t>(id)]; });
}

// A mask is what trying each token byte by byte finds, along many random texts.
TEST(Constraint, MasksAllowExactlyTheTokensThatCanGoOn) {
  for (
      Automaton automaton :
      {compile_json_schema(
           R"({"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"string","maxLength":5}}})"),
       compile_json_schema("true"), compile_gbnf("root ::= (\"a\" | \"ab\"){2,40} \"x\" | \"é\"*")}) {
    const Automaton same = automaton;
    const Matcher matcher(same);
    Constraint constraint(std::move(automaton), vocabulary());
    uint32_t random = 1;
    for (int text = 0; text < 40; ++text) {
      State state = constraint.start();
      for (int length = 0; length < 60; ++length) {
        const Mask mask = constraint.mask(state);
        std::vector<int32_t> allowed;
        for (int32_t id = 0; id < static_cast<int32_t>(kPieces.size()); ++id) {
          const std::string& piece = kPieces[static_cast<size_t>(id)];
          const bool goes_on = !piece.empty() && !matcher.read(state, piece).dead();
          ASSERT_EQ(mask.allows(id), goes_on) << piece;
          if (goes_on) allowed.push_back(id);
        }
        ASSERT_EQ(mask.any, !allowed.empty());
        ASSERT_TRUE(mask.any || state.complete());
        if (allowed.empty()) break;
        random = random * 1664525 + 1013904223;
        state =
            constraint.advance(state, kPieces[static_cast<size_t>(allowed[(random >> 16) % allowed.size()])]);
      }
    }
  }
}

TEST(Constraint, TokensMayEndInTheMiddleOfACharacter) {
  Constraint constraint(compile_gbnf("root ::= \"é\""), vocabulary());
  const Mask& first = constraint.mask(constraint.start());
  EXPECT_TRUE(first.allows(12));  // the first byte of é
  EXPECT_FALSE(first.allows(13));
  EXPECT_TRUE(constraint.mask(constraint.advance(constraint.start(), "\xc3")).allows(13));
}

}  // namespace
}  // namespace juno::grammar
