// SPDX-License-Identifier: Apache-2.0
#include "gguf/reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "gguf/support.h"

namespace juno::gguf::testing {
namespace {

constexpr uint32_t kU16 = 2, kI32 = 5, kString = 8, kArray = 9;
constexpr uint32_t kF32Tensor = 0;

Result<Reader> open_bytes(const std::string& bytes) {
  return Reader::open_memory(bytes_of(bytes), "draft.gguf", {});
}

std::string error_of(const std::string& bytes) {
  const auto reader = open_bytes(bytes);
  return reader ? "no error" : reader.error().message;
}

Draft two_tensors() {
  Draft draft;
  draft.key("general.architecture", kString, Draft::text("llama"));
  draft.tensor("a", kF32Tensor, {8}, 0).tensor("b", kF32Tensor, {4, 2}, 32);
  draft.data = std::string(32, 'a') + std::string(32, 'b');
  return draft;
}

}  // namespace

TEST(Reader, HandsOutTensorsAndKeysOfBothVersions) {
  for (uint32_t version : {2u, 3u}) {
    Draft draft = two_tensors();
    draft.version = version;
    const std::string bytes = draft.pack();
    const Reader reader = take(open_bytes(bytes));
    EXPECT_EQ(reader.version(), version);
    EXPECT_EQ(reader.alignment(), 32u);
    EXPECT_EQ(reader.metadata().require<std::string>("general.architecture"), "llama");
    ASSERT_EQ(reader.tensors().size(), 2u);
    const TensorInfo* b = reader.tensor("b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->n_dims, 2u);
    EXPECT_EQ(b->dims[0], 4u);
    EXPECT_EQ(b->dims[1], 2u);
    EXPECT_EQ(b->dims[2], 1u);
    EXPECT_EQ(b->bytes, 32u);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(b->data), 32), std::string(32, 'b'));
    EXPECT_EQ(reader.tensor("c"), nullptr);
    EXPECT_EQ(reader.tensor_bytes(), 64u);
    EXPECT_EQ(reader.file_bytes(), bytes.size());
  }
}

TEST(Reader, ViewsOutliveAMove) {
  const TempDir folder;
  write_file(folder / "m.gguf", two_tensors().pack());
  Reader first = take(Reader::open(folder / "m.gguf", {}));
  const uint8_t* data = first.tensor("a")->data;
  const std::string_view name = first.tensor("a")->name;
  const Reader second = std::move(first);
  EXPECT_EQ(second.tensor("a")->data, data);
  EXPECT_EQ(name, "a");
  EXPECT_EQ(data[0], 'a');
}

TEST(C01, SizesWhosePaddedSumPassesTwoToThe64AreRefused) {
  Draft draft;
  draft.tensor("a", kF32Tensor, {uint64_t(1) << 61}, 0)
      .tensor("b", kF32Tensor, {uint64_t(1) << 61}, uint64_t(1) << 63);
  const std::string message = error_of(draft.pack());
  EXPECT_NE(message.find("tensor a needs 9223372036854775808 bytes at offset 0, the file has 0"),
            std::string::npos)
      << message;
}

TEST(C04, ManyKeysAndTensorsAreRefusedBeforeMemoryIsTaken) {
  Draft draft = two_tensors();
  draft.n_keys = kMaxKeys + 1;
  draft.data.resize(4 << 20);
  EXPECT_NE(error_of(draft.pack()).find("65537 keys"), std::string::npos);
  draft = two_tensors();
  draft.n_tensors = kMaxTensors + 1;
  draft.data.resize(16 << 20);
  EXPECT_NE(error_of(draft.pack()).find("262145 tensors"), std::string::npos);
}

TEST(Reader, RefusesTypesByTheirName) {
  const auto with_type = [](uint32_t type) { return error_of(Draft().tensor("t", type, {256}, 0).pack()); };
  EXPECT_NE(with_type(4).find("tensor t: the type Q4_2 (4) was withdrawn"), std::string::npos)
      << with_type(4);
  EXPECT_NE(with_type(77).find("tensor t: there is no tensor type 77"), std::string::npos);
  EXPECT_EQ(type_name(16), "IQ2_XXS");
  EXPECT_EQ(type_name(77), "type 77");
}

TEST(Reader, TheTableOfTypesIsSortedByItsNumbers) {
  for (uint32_t id = 0; id < std::size(kTensorTypes); id++) EXPECT_EQ(tensor_type(id)->id, id);
  EXPECT_EQ(tensor_type(std::size(kTensorTypes)), nullptr);
}

TEST(Reader, OverlapsAreFoundInAnyOrder) {
  Draft draft;
  draft.tensor("late", kF32Tensor, {8}, 64).tensor("early", kF32Tensor, {24}, 0);
  draft.data.resize(96);
  EXPECT_NE(error_of(draft.pack()).find("tensors early and late overlap"), std::string::npos)
      << error_of(draft.pack());
}

TEST(Reader, OpensVocabulariesWithoutCopyingTheirTokens) {
  const std::string path = JUNO_SOURCE_DIR "/tests/data/tokenizers/ggml-vocab-qwen2.gguf";
  take(Reader::open(path, {}));  // the page cache is warm
  const auto start = std::chrono::steady_clock::now();
  const Reader reader = take(Reader::open(path, {}));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  const Value* tokens = reader.metadata().find("tokenizer.ggml.tokens");
  ASSERT_NE(tokens, nullptr);
  EXPECT_GT(tokens->count, 150000u);
  uint64_t n = 0, characters = 0;
  for (const Value& token : *tokens) {
    n++;
    characters += token.as<std::string_view>()->size();
  }
  EXPECT_EQ(n, tokens->count);
  EXPECT_EQ(characters + 8 * n, tokens->bytes.size());
  EXPECT_LT(took.count(), 200);  // some 5 ms; ten times that under a sanitizer
  RecordProperty("open_us", int(took.count() * 1000));
}

TEST(Split, OpeningTheFirstPartOpensAll) {
  const TempDir folder;
  const auto part = [&](uint16_t no, uint16_t count, int32_t total, const char* tensor) {
    Draft draft;
    if (no == 0) draft.key("general.name", kString, Draft::text("split"));
    draft.key("split.no", kU16, Draft::raw(no)).key("split.count", kU16, Draft::raw(count));
    draft.key("split.tensors.count", kI32, Draft::raw(total)).tensor(tensor, kF32Tensor, {8}, 0);
    draft.data.assign(32, tensor[0]);
    return draft.pack();
  };
  const std::string first = folder / "m-00001-of-00002.gguf", second = folder / "m-00002-of-00002.gguf";
  write_file(first, part(0, 2, 2, "x"));
  write_file(second, part(1, 2, 2, "y"));
  {
    const Reader reader = take(Reader::open(first, {}));
    EXPECT_EQ(reader.parts(), 2u);
    EXPECT_EQ(reader.tensor("y")->part, 1u);
    EXPECT_EQ(reader.tensor("y")->data[31], 'y');
    EXPECT_EQ(reader.file_bytes(), std::filesystem::file_size(first) + std::filesystem::file_size(second));
  }
  const auto expect = [&](const std::string& path, const char* words) {
    const auto reader = Reader::open(path, {});
    ASSERT_FALSE(reader) << words;
    EXPECT_NE(reader.error().message.find(words), std::string::npos) << reader.error().message;
  };
  expect(second, "part 2 of a split model: open ");
  write_file(second, part(1, 2, 2, "x"));
  expect(first, "the tensor x is given twice");
  write_file(second, part(0, 2, 2, "y"));
  expect(first, "00002-of-00002.gguf: split.no is 0, expected 1");
  write_file(second, part(1, 3, 2, "y"));
  expect(first, "00002-of-00002.gguf: split.count is 3, expected 2");
  write_file(second, part(1, 2, 7, "y"));
  expect(first, "split.tensors.count is 7, expected 2");
  write_file(second, "GGUF");
  expect(first, "part 2 of 2");
  std::filesystem::remove(second);
  expect(first, "00002-of-00002.gguf");
}

TEST(Faults, NoSuchPathIsNamed) {
  const auto reader = Reader::open("/no/such/model.gguf", {});
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::kNoInput);
  EXPECT_NE(reader.error().message.find("/no/such/model.gguf: No such file"), std::string::npos);
}

TEST(Faults, AFileThatShrinksWhileItIsReadGivesAnErrorAndNoSignal) {
  const TempDir folder;
  const std::string path = folder / "m.gguf";
  Draft draft = two_tensors();
  std::string many;
  for (int i = 0; i < 200000; i++) many += Draft::text("token");
  draft.key("tokenizer.ggml.tokens", kArray, Draft::raw(kString) + Draft::raw(uint64_t(200000)) + many);
  const std::string bytes = draft.pack();
  const Outcome outcome = in_child([&] {
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (size_t i = 0; !stop; i++) {
        write_file(path, bytes);
        std::filesystem::resize_file(path, bytes.size() * (i % 16) / 16);
      }
    });
    int opened = 0, refused = 0;
    for (int i = 0; i < 300; i++) {
      const auto reader = Reader::open(path, {});
      uint64_t n = 0;
      if (reader)
        for (const Value& token : *reader->metadata().find("tokenizer.ggml.tokens")) n += token.bytes.size();
      reader&& n == 1000000 ? opened++ : refused++;
    }
    stop = true;
    writer.join();
    return Report{0, fmt::format("{} opened, {} refused", opened, refused), ""};
  });
  EXPECT_FALSE(outcome.died) << outcome.message;
}

TEST(Faults, AChangeAfterOpeningIsNoticed) {
  const TempDir folder;
  write_file(folder / "m.gguf", two_tensors().pack());
  const Reader reader = take(Reader::open(folder / "m.gguf", {}));
  EXPECT_TRUE(reader.unchanged());
  std::filesystem::resize_file(folder / "m.gguf", 100);
  const auto now = reader.unchanged();
  ASSERT_FALSE(now);
  EXPECT_EQ(now.error().code, Code::kBadData);
  EXPECT_EQ(reader.metadata().require<std::string>("general.architecture"), "llama") << "metadata is private";
}

}  // namespace juno::gguf::testing
