// SPDX-License-Identifier: Apache-2.0
#include "gguf/safetensors.h"

#include <gtest/gtest.h>

#include "gguf/support.h"

namespace juno::gguf::testing {
namespace {

std::string pack(const std::string& header, const std::string& data) {
  return Draft::raw(uint64_t(header.size())) + header + data;
}

std::string error_of(const std::string& bytes) {
  const auto file = Safetensors::open_memory(bytes_of(bytes), "a.safetensors");
  if (file) return "no error";
  EXPECT_EQ(file.error().code, Code::kBadData);
  return file.error().message;
}

constexpr const char* kGood =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[2,10]},)"
    R"("a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}  )";

}  // namespace

TEST(Safetensors, HandsOutTensorsSortedByName) {
  const TempDir folder;
  write_file(folder / "a.safetensors", pack(kGood, "aabbbbBBBB"));
  const Safetensors file = take(Safetensors::open(folder / "a.safetensors"));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_TRUE(file.tensors()[0].shape.empty());
  const SafeTensor* b = file.tensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, "F32");
  EXPECT_EQ(b->shape, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(std::string(b->data.begin(), b->data.end()), "bbbbBBBB");
  EXPECT_EQ(file.tensor("c"), nullptr);
  ASSERT_EQ(file.metadata().size(), 1u);
  EXPECT_EQ(file.metadata()[0].second, "pt");
  EXPECT_TRUE(file.unchanged());
}

TEST(Safetensors, SaysWhatIsWrong) {
  const auto tensor = [](const std::string& fields) {
    return error_of(pack("{\"t\":{" + fields + "}}", "12345678"));
  };
  const struct {
    std::string error, words;
  } cases[] = {
      {error_of("1234"), "no safetensors file"},
      {error_of(Draft::raw(uint64_t(1) << 63) + "{}"), "a header length of 9223372036854775808 bytes"},
      {error_of(pack("[]", "")), "its header is no object"},
      {error_of(pack("{\"t\":", "")), "the header is no JSON from byte"},
      {error_of(pack("{} x", "")), "the header is no JSON from byte"},
      {error_of(pack("{\"t\":5}", "")), "a number where none belongs"},
      {error_of(pack("{\"t\":" + std::string(100000, '['), "")), "an array where none belongs"},
      {error_of(pack("{\"\xff\":{}}", "")), "no JSON"},
      {error_of(pack("{}", "x")), "1 bytes of data belong to no tensor"},
      {tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,9])"),
       "tensor t lies from 0 to 9, the file has 8"},
      {tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "tensor t lies from 8 to 0"},
      {tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"),
       "tensor t needs 12 bytes, its data_offsets hold 8"},
      {tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "tensor t has 1 data_offsets"},
      {tensor(R"("dtype":"X9","shape":[2],"data_offsets":[0,8])"), "tensor t has the unknown dtype \"X9\""},
      {tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"),
       "does not fit 64 bits"},
      {tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "a negative number"},
      {tensor(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8])"), "more than 8 items"},
      {tensor(R"("dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8])"), "shape of t is given twice"},
      {tensor(R"("speed":1)"), "unknown field speed"},
      {error_of(pack(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
           "123")),
       "tensor b begins at 1, the one before it ends at 2"},
      {error_of(pack(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
           "12")),
       "the tensor a is given twice"},
  };
  for (const auto& c : cases)
    EXPECT_NE(c.error.find(c.words), std::string::npos) << c.error << "\nexpected: " << c.words;
}

TEST(Safetensors, AHeaderFullOfEntriesCostsNoMoreThanItsFile) {
  std::string header = "{\"__metadata__\":{";
  for (int i = 0; i < 1000000; i++) header += "\"a\":\"b\",";
  const std::string bytes = pack(header + "\"z\":\"\"}}", "");
  const Outcome outcome = in_child([&] { return Report{65, error_of(bytes), ""}; });
  EXPECT_FALSE(outcome.died);
  EXPECT_NE(outcome.message.find("more than 65536 texts"), std::string::npos) << outcome.message;
  EXPECT_LT(outcome.growth, 32 << 20);
}

}  // namespace juno::gguf::testing
