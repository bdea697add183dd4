// SPDX-License-Identifier: Apache-2.0
#include "gguf/writer.h"

#include <gtest/gtest.h>

#include "gguf/reader.h"
#include "gguf/support.h"

namespace juno::gguf::testing {
namespace {

size_t files_in(const TempDir& folder) {
  return size_t(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

}  // namespace

TEST(Writer, WhatItWritesIsRead) {
  const TempDir folder;
  const std::string path = folder / "out.gguf";
  for (uint32_t alignment : {8u, 32u, 4096u}) {
    Writer writer = take(Writer::create(path, alignment));
    take(writer.put("u8", uint8_t(1)));
    take(writer.put("i8", int8_t(-1)));
    take(writer.put("u16", uint16_t(2)));
    take(writer.put("i16", int16_t(-2)));
    take(writer.put("u32", uint32_t(3)));
    take(writer.put("i32", int32_t(-3)));
    take(writer.put("u64", uint64_t(4)));
    take(writer.put("i64", int64_t(-4)));
    take(writer.put("f32", 0.5f));
    take(writer.put("f64", 0.25));
    take(writer.put("bool", true));
    take(writer.put("text", "text"));
    take(writer.put("bools", std::vector<bool>{true, false}));
    take(writer.put("words", std::vector<std::string>{"a", "b c"}));
    take(writer.put("nested", std::vector<std::vector<int32_t>>{{1}, {}, {2, 3}}));
    take(writer.declare("m", 8, std::vector<uint64_t>{32, 3}));
    take(writer.declare("v", 0, std::vector<uint64_t>{5}));
    const std::string data(3 * 34 + 20, 'd');
    for (size_t at = 0; at < data.size(); at += 7)
      take(writer.write(bytes_of(data).subspan(at, std::min<size_t>(7, data.size() - at))));
    take(writer.finish());

    const Reader reader = take(Reader::open(path, {}));
    const Metadata& m = reader.metadata();
    EXPECT_EQ(reader.alignment(), alignment);
    EXPECT_EQ(m.find("u8")->type, ValueType::kU8);
    EXPECT_EQ(m.find("i64")->type, ValueType::kI64);
    int64_t sum = 0;
    for (const char* key : {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"})
      sum += m.require<int64_t>(key);
    EXPECT_EQ(sum, 0);
    EXPECT_EQ(m.require<float>("f32") + m.require<double>("f64"), 0.75);
    EXPECT_TRUE(m.require<bool>("bool"));
    EXPECT_EQ(m.require<std::string>("text"), "text");
    EXPECT_EQ(m.require<std::vector<bool>>("bools"), (std::vector<bool>{true, false}));
    EXPECT_EQ(m.require<std::vector<std::string>>("words"), (std::vector<std::string>{"a", "b c"}));
    EXPECT_EQ(shown(*m.find("nested")), "[[1], [], [2, 3]]");
    EXPECT_EQ(reader.tensor("m")->bytes, 102u);
    EXPECT_EQ(reader.tensor("v")->dims[0], 5u);
    EXPECT_EQ(reader.tensor("v")->offset % alignment, 0u);
    EXPECT_EQ(reader.tensor("v")->data[19], 'd');
    EXPECT_EQ(files_in(folder), 1u);
  }
}

TEST(Writer, CopiesAModelKeyByKey) {
  const TempDir folder;
  const Reader from = take(Reader::open(JUNO_SOURCE_DIR "/models/juno-demo-23m.Q8_0.gguf", {}));
  Writer writer = take(Writer::create(folder / "copy.gguf"));
  for (const Metadata::Entry& entry : from.metadata().entries())
    if (entry.key != "general.alignment") take(writer.put(entry.key, entry.value));
  for (const TensorInfo& t : from.tensors())
    take(writer.declare(t.name, t.type, std::span(t.dims, t.n_dims)));
  for (const TensorInfo& t : from.tensors()) take(writer.write({t.data, t.bytes}));
  take(writer.finish());

  const Reader copy = take(Reader::open(folder / "copy.gguf", {}));
  for (const Metadata::Entry& entry : from.metadata().entries()) {
    const Value* value = copy.metadata().find(entry.key);
    ASSERT_NE(value, nullptr) << entry.key;
    EXPECT_TRUE(std::ranges::equal(value->bytes, entry.value.bytes)) << entry.key;
  }
  ASSERT_EQ(copy.tensors().size(), from.tensors().size());
  for (const TensorInfo& t : from.tensors()) {
    const TensorInfo* same = copy.tensor(t.name);
    ASSERT_NE(same, nullptr) << t.name;
    EXPECT_TRUE(std::ranges::equal(std::span(t.data, t.bytes), std::span(same->data, same->bytes))) << t.name;
  }
}

TEST(Writer, AFileThatIsNotFinishedLeavesTheOldOne) {
  const TempDir folder;
  write_file(folder / "m.gguf", "old");
  {
    Writer writer = take(Writer::create(folder / "m.gguf"));
    take(writer.declare("t", 0, std::vector<uint64_t>{8}));
    take(writer.write(bytes_of("1234")));
    EXPECT_EQ(files_in(folder), 2u);
    const auto early = writer.finish();
    ASSERT_FALSE(early);
    EXPECT_NE(early.error().message.find("data was written for 0 of 1 tensors"), std::string::npos)
        << early.error().message;
  }
  EXPECT_EQ(files_in(folder), 1u);
  EXPECT_EQ(read_file(folder / "m.gguf"), "old");
}

TEST(Writer, RefusesWhatNoReaderTakes) {
  const TempDir folder;
  EXPECT_FALSE(Writer::create(folder / "m.gguf", 3));
  EXPECT_FALSE(Writer::create(folder / "none/m.gguf"));
  Writer writer = take(Writer::create(folder / "m.gguf"));
  EXPECT_FALSE(writer.put("", 1));
  EXPECT_FALSE(writer.put("a\nb", 1));
  EXPECT_TRUE(writer.put("a", 1));
  EXPECT_FALSE(writer.put("a", 2));
  EXPECT_FALSE(writer.put("general.alignment", 64u));
  EXPECT_FALSE(writer.declare("t", 4, std::vector<uint64_t>{8}));
  EXPECT_FALSE(writer.declare("t", 0, std::vector<uint64_t>{}));
  EXPECT_FALSE(writer.declare("t", 0, std::vector<uint64_t>{8, 0}));
  EXPECT_FALSE(writer.declare("t", 8, std::vector<uint64_t>{8}));
  EXPECT_FALSE(writer.declare("t", 0, std::vector<uint64_t>{uint64_t(1) << 63}));
  EXPECT_FALSE(writer.declare(std::string(65, 't'), 0, std::vector<uint64_t>{8}));
  EXPECT_TRUE(writer.declare("t", 0, std::vector<uint64_t>{1}));
  EXPECT_FALSE(writer.declare("t", 0, std::vector<uint64_t>{1}));
  EXPECT_FALSE(writer.write(bytes_of("12345")));
  EXPECT_FALSE(writer.put("late", 1));
}

}  // namespace juno::gguf::testing
