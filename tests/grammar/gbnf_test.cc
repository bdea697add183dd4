// SPDX-License-Identifier: Apache-2.0
#include "grammar/gbnf.h"

#include <gtest/gtest.h>

#include "grammar/fault.h"
#include "grammar/matcher.h"

namespace juno::grammar {
namespace {

bool allows(std::string_view grammar, std::string_view text) {
  const Automaton automaton = compile_gbnf(grammar);
  return Matcher(automaton).matches(text);
}

Fault fault_of(std::string_view grammar) {
  try {
    compile_gbnf(grammar);
  } catch (const Fault& fault) {
    return fault;
  }
  ADD_FAILURE() << "accepted: " << grammar;
  return {Refusal::kInvalidGrammar, ""};
}

TEST(Gbnf, RulesLiteralsClassesAndRepetitions) {
  const char* const arithmetic = R"G(
    # expressions
    root ::= expr "=" ws term "\n"
    expr ::= term ([-+*/] term)*
    term ::= ident | num | "(" ws expr ")" ws
    ident ::= [a-z] [a-z0-9_]* ws
    num ::= [0-9]+ ws
    ws ::= [ \t\n]*
  )G";
  EXPECT_TRUE(allows(arithmetic, "(1 +x_2)*3= y\n"));
  EXPECT_FALSE(allows(arithmetic, "(1 +x_2*3= y\n"));
  EXPECT_FALSE(allows(arithmetic, "1=2"));
}

TEST(Gbnf, CountsLiteralsAsAWhole) {
  EXPECT_TRUE(allows("root ::= \"ab\"{2,3} \"c\"?", "ababc"));
  EXPECT_TRUE(allows("root ::= \"ab\"{2,3}", "ababab"));
  EXPECT_FALSE(allows("root ::= \"ab\"{2,3}", "abb"));
  EXPECT_FALSE(allows("root ::= \"ab\"{2,3}", "abababab"));
  EXPECT_TRUE(allows("root ::= [a]{2,} .", "aaaé"));
}

TEST(Gbnf, ClassesHoldCharactersNotBytes) {
  EXPECT_TRUE(allows("root ::= [à-ü]+", "éü"));
  EXPECT_FALSE(allows("root ::= [à-ü]+", "\xc3"));
  EXPECT_TRUE(allows("root ::= [^a\\n]", "😀"));
  EXPECT_FALSE(allows("root ::= [^a\\n]", "a"));
  EXPECT_TRUE(allows("root ::= \"\\u00e9\\x41\"", "éA"));
  EXPECT_FALSE(allows("root ::= .", "\xed\xa0\x80"));  // a surrogate is no character
}

TEST(Gbnf, EveryCharacterHasExactlyItsEncoding) {
  const Automaton automaton = compile_gbnf("root ::= [\\u0100-\\uFFFF\\U00010000-\\U0010FFFF]");
  const Matcher matcher(automaton);
  for (uint32_t c : {0xffu, 0x100u, 0x7ffu, 0x800u, 0xfffu, 0x1000u, 0xcfffu, 0xd7ffu, 0xe000u, 0xffffu}) {
    std::string text;
    if (c < 0x800) {
      text = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else {
      text = {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
              static_cast<char>(0x80 | (c & 63))};
    }
    EXPECT_EQ(matcher.matches(text), c >= 0x100) << c;
  }
  EXPECT_TRUE(matcher.matches("\xf0\x90\x80\x80"));
  EXPECT_TRUE(matcher.matches("\xf4\x8f\xbf\xbf"));
  EXPECT_FALSE(matcher.matches("\xf4\x90\x80\x80"));
  EXPECT_FALSE(matcher.matches("\xe0\x80\x80"));  // overlong
}

TEST(Gbnf, FaultsNameLineAndColumn) {
  const Fault fault = fault_of("root ::= a\na ::= [x-");
  EXPECT_EQ(fault.line, 2);
  EXPECT_EQ(fault.refusal, Refusal::kInvalidGrammar);
  for (const char* bad :
       {"", "root", "root ::= b", "root ::= \"a", "root ::= (\"a\"", "root ::= \"a\")", "root ::= [b-a]",
        "root ::= \"a\"{3,2}", "root ::= \"a\"{99999999}", "root ::= \"\\q\"", "x ::= \"a\"",
        "root ::= \"a\"\nroot ::= \"b\"", "root ::= *", "root ::= []"})
    EXPECT_FALSE(fault_of(bad).message.empty()) << bad;
}

TEST(C23, GrammarsThatNeverEndOrBeginWithThemselvesAreRefused) {
  for (const char* bad : {"root ::= root \"a\" | \"b\"", "root ::= a\na ::= b? root \"x\"\nb ::= \"c\"",
                          "root ::= \"a\" root", "root ::= (root)"})
    EXPECT_EQ(fault_of(bad).refusal, Refusal::kInvalidGrammar) << bad;
}

TEST(Gbnf, DepthCostsNoStack) {
  std::string groups = "\"a\"";
  for (int i = 0; i < 10000; ++i) groups = "(" + groups + ")";
  EXPECT_TRUE(allows("root ::= " + groups, "a"));
  EXPECT_TRUE(
      allows("root ::= \"(\" root \")\" | \"x\"", std::string(3000, '(') + "x" + std::string(3000, ')')));
}

TEST(Gbnf, EmptyRoundsOfALoopEnd) {
  EXPECT_TRUE(allows("root ::= (\"a\"*){0,1000} \"b\"", "aaab"));
  EXPECT_TRUE(allows("root ::= ((\"a\"?){5,7}){3} \"b\"", "b"));
  EXPECT_FALSE(allows("root ::= (\"a\"?){5,7} \"b\"", "aaaaaaaab"));
  EXPECT_TRUE(allows("root ::= (\"a\"?){5,7} \"b\"", "aaaaaaab"));
}

}  // namespace
}  // namespace juno::grammar
