// SPDX-License-Identifier: Apache-2.0
#include "gguf/metadata.h"

#include <gtest/gtest.h>

#include "gguf/reader.h"
#include "gguf/support.h"

namespace juno::gguf::testing {
namespace {

std::string draft() {
  Draft draft;
  draft.key("u8", 0, Draft::raw(uint8_t(200)))
      .key("i32", 5, Draft::raw(int32_t(-5)))
      .key("u64", 10, Draft::raw(uint64_t(1) << 40));
  draft.key("f32", 6, Draft::raw(0.5f))
      .key("f64", 12, Draft::raw(0.1))
      .key("yes", 7, "\1")
      .key("text", 8, Draft::text("hi"));
  draft.key(
      "words", 9,
      Draft::raw(8u) + Draft::raw(uint64_t(3)) + Draft::text("a") + Draft::text("") + Draft::text("ccc"));
  draft.key("numbers", 9,
            Draft::raw(3u) + Draft::raw(uint64_t(2)) + Draft::raw(int16_t(-1)) + Draft::raw(int16_t(7)));
  const std::string one = Draft::raw(0u) + Draft::raw(uint64_t(1)) + "\7",
                    none = Draft::raw(8u) + Draft::raw(uint64_t(0));
  draft.key("nested", 9, Draft::raw(9u) + Draft::raw(uint64_t(2)) + one + none);
  return draft.pack();
}

class MetadataTest : public ::testing::Test {
 protected:
  template <class T>
  std::string error_of(std::string_view key) const {
    try {
      metadata_.require<T>(key);
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::kBadData);
      return e.message;
    }
    return "no error";
  }
  const std::string bytes_ = draft();
  const Reader reader_ = take(Reader::open_memory(bytes_of(bytes_), "m.gguf", {}));
  const Metadata& metadata_ = reader_.metadata();
};

}  // namespace

TEST_F(MetadataTest, GivesEachTypeAsItself) {
  EXPECT_EQ(metadata_.require<uint8_t>("u8"), 200);
  EXPECT_EQ(metadata_.require<int32_t>("i32"), -5);
  EXPECT_EQ(metadata_.require<float>("f32"), 0.5f);
  EXPECT_EQ(metadata_.require<double>("f64"), 0.1);
  EXPECT_TRUE(metadata_.require<bool>("yes"));
  EXPECT_EQ(metadata_.require<std::string_view>("text"), "hi");
  EXPECT_EQ(metadata_.require<std::vector<std::string>>("words"), (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_EQ(metadata_.require<std::vector<int>>("numbers"), (std::vector<int>{-1, 7}));
  EXPECT_EQ(metadata_.get<int>("none"), std::nullopt);
  EXPECT_EQ(metadata_.entries().size(), 10u);
  EXPECT_EQ(metadata_.entries()[1].key, "i32");
}

TEST_F(MetadataTest, ConvertsIntegersThatFitAndNothingElse) {
  EXPECT_EQ(metadata_.require<int64_t>("u8"), 200);
  EXPECT_EQ(metadata_.require<double>("f32"), 0.5);
  EXPECT_EQ(error_of<int8_t>("u8"),
            "[gguf] m.gguf: the key u8 is 200 (u8), expected an integer from -128 to 127");
  EXPECT_EQ(error_of<uint32_t>("i32"),
            "[gguf] m.gguf: the key i32 is -5 (i32), expected an integer from 0 to 4294967295");
  EXPECT_EQ(error_of<uint32_t>("u64"),
            "[gguf] m.gguf: the key u64 is 1099511627776 (u64), expected an integer from 0 to 4294967295");
  EXPECT_EQ(error_of<float>("f64"), "[gguf] m.gguf: the key f64 is 0.1 (f64), expected an f32");
  EXPECT_EQ(error_of<int>("f32"),
            "[gguf] m.gguf: the key f32 is 0.5 (f32), expected an integer from -2147483648 to 2147483647");
  EXPECT_EQ(error_of<float>("u8"), "[gguf] m.gguf: the key u8 is 200 (u8), expected an f32");
  EXPECT_EQ(error_of<bool>("u8"), "[gguf] m.gguf: the key u8 is 200 (u8), expected a bool");
  EXPECT_EQ(error_of<std::string>("words"),
            "[gguf] m.gguf: the key words is an array of 3 string, expected a string");
  EXPECT_EQ(error_of<std::vector<uint8_t>>("numbers"),
            "[gguf] m.gguf: the key numbers is an array of 2 i16, expected an array, each item an integer "
            "from 0 to 255");
  EXPECT_EQ(error_of<int>("none"), "[gguf] m.gguf: the key none is missing");
}

TEST_F(MetadataTest, WalksNestedArrays) {
  const Value* nested = metadata_.find("nested");
  ASSERT_NE(nested, nullptr);
  std::vector<uint64_t> counts;
  for (const Value& inner : *nested) counts.push_back(inner.count);
  EXPECT_EQ(counts, (std::vector<uint64_t>{1, 0}));
  EXPECT_EQ((*(*nested).begin()).as<std::vector<int>>(), (std::vector<int>{7}));
  EXPECT_EQ(shown(*nested), "[[7], []]");
  EXPECT_EQ(shown(*metadata_.find("words")), "[a, , ccc]");
}

TEST_F(MetadataTest, ShowsLongValuesShortened) {
  Draft draft;
  draft.key("long", 8, Draft::text(std::string(1000, 'x'))).key("bad", 8, Draft::text("a\xff\n"));
  draft.key("list", 9, Draft::raw(0u) + Draft::raw(uint64_t(500)) + std::string(500, '\1'));
  const std::string bytes = draft.pack();
  Listener listener;
  const Reader reader = take(Reader::open_memory(bytes_of(bytes), "m.gguf", listener.log));
  EXPECT_EQ(shown(*reader.metadata().find("long"), 5), "xxxxx…");
  EXPECT_EQ(shown(*reader.metadata().find("bad")), "a\uFFFD\\x0a");
  EXPECT_EQ(shown(*reader.metadata().find("list"), 8), "[1, 1, 1, …]");
  EXPECT_EQ(listener.heard,
            "[gguf] m.gguf: the value of bad is not UTF-8; it is shown with replacement characters\n");
}

}  // namespace juno::gguf::testing
