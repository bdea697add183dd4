// SPDX-License-Identifier: Apache-2.0
#include "engine/stop.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace juno::engine {
namespace {

using Strings = std::vector<std::string>;

// The rule itself, on the whole text.
std::string cut_whole(const std::string& text, const Strings& stops) {
  size_t end = text.size();
  for (const std::string& s : stops) end = std::min(end, text.find(s));
  return text.substr(0, end);
}

struct Outcome {
  std::string text;
  bool stopped;
};

Outcome feed(const Strings& pieces, const Strings& stops) {
  StopMatcher matcher(stops);
  std::string out;
  for (const std::string& piece : pieces) {
    if (!matcher.push(piece, out)) break;
  }
  matcher.flush(out);
  return {out, matcher.stopped()};
}

const std::string kReply =
    "The capital of Japan is Tokyo.\n\nTokyo is large: 東京は大きい。 aaaab ababac <|end|>";

TEST(C21, TextEndsBeforeTheFirstMatchWhereverBordersFall) {
  for (size_t begin = 0; begin < kReply.size(); ++begin) {
    for (size_t length : {size_t{1}, size_t{2}, size_t{5}, size_t{20}}) {
      const Strings stops = {kReply.substr(begin, length)};
      const std::string expected = cut_whole(kReply, stops);
      for (size_t step : {1, 2, 3, 7, 100}) {
        Strings pieces;
        for (size_t i = 0; i < kReply.size(); i += step) pieces.push_back(kReply.substr(i, step));
        const Outcome got = feed(pieces, stops);
        ASSERT_EQ(got.text, expected) << "stop at " << begin << "+" << length << ", pieces of " << step;
        ASSERT_TRUE(got.stopped);
      }
    }
  }
}

TEST(C21, OneCutAtEveryPositionChangesNothing) {
  const Strings stops = {"Tokyo is", "Tokyo isn", "ababac", "。 a"};
  for (size_t cut = 0; cut <= kReply.size(); ++cut) {
    const Outcome got = feed({kReply.substr(0, cut), kReply.substr(cut)}, stops);
    ASSERT_EQ(got.text, cut_whole(kReply, stops)) << cut;
  }
}

TEST(C21, SeveralStopStringsOneAPrefixOfAnotherOneInsideAnother) {
  for (const Strings& stops : {Strings{"abc", "ab"}, Strings{"ab", "abc"}, Strings{"xabcd", "bc"},
                               Strings{"aab", "aaab", "b", "zzz"}, Strings{"", "bc"}}) {
    for (const std::string text : {"xabcx", "xxabcd", "aaaab", "xabx", "abxabc", "zz", "xab", "aa"}) {
      Strings bytes;
      for (char c : std::string(text)) bytes.emplace_back(1, c);
      Strings used = stops;
      std::erase(used, "");
      EXPECT_EQ(feed(bytes, stops).text, cut_whole(text, used)) << text;
      EXPECT_EQ(feed({text}, stops).text, cut_whole(text, used)) << text;
    }
  }
}

TEST(C21, HeldTextAppearsWhenNoMatchComes) {
  StopMatcher matcher({"###END###"});
  std::string out;
  EXPECT_TRUE(matcher.push("answer ###EN", out));
  EXPECT_EQ(out, "answer ") << "a beginning of the stop string is held back";
  EXPECT_TRUE(matcher.push("ORMOUS", out));
  EXPECT_EQ(out, "answer ###ENORMOUS") << "released as soon as it cannot match";
}

TEST(C21, HeldTextAppearsAtTheMaximum) {
  const Outcome got = feed({"answer ", "##", "#E"}, {"###END###"});
  EXPECT_EQ(got.text, "answer ###E");
  EXPECT_FALSE(got.stopped);
}

TEST(C21, AMatchInsideHeldTextStillCountsAtTheMaximum) {
  const Outcome got = feed({"x", "ab", "c"}, {"abcd", "bc"});
  EXPECT_EQ(got.text, "xa");
  EXPECT_TRUE(got.stopped);
}

TEST(C21, AStopStringOfManyBytes) {
  const std::string stop(10000, 'y');
  const Outcome miss = feed({"x", std::string(9999, 'y'), "z"}, {stop});
  EXPECT_EQ(miss.text, "x" + std::string(9999, 'y') + "z");
  const Outcome hit = feed({"x", std::string(9999, 'y'), "y"}, {stop});
  EXPECT_EQ(hit.text, "x");
}

TEST(StopMatcher, TextAfterAMatchIsDropped) {
  StopMatcher matcher({"stop"});
  std::string out;
  EXPECT_FALSE(matcher.push("go stop here", out));
  EXPECT_FALSE(matcher.push("more", out));
  matcher.flush(out);
  EXPECT_EQ(out, "go ");
}

}  // namespace
}  // namespace juno::engine
