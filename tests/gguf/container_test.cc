// SPDX-License-Identifier: Apache-2.0
// Files that are, or hold, something else than plain GGUF.
#include <gtest/gtest.h>

#include <cstdlib>

#include "gguf/reader.h"
#include "gguf/safetensors.h"
#include "gguf/support.h"

namespace juno::gguf::testing {
namespace {

std::string model() {
  Draft draft;
  draft.key("general.name", 8, Draft::text("inside")).tensor("t", 0, {8}, 0);
  draft.data = std::string(32, 't');
  return draft.pack();
}

struct Zip {
  uint16_t method = 0, flags = 0;
  bool zip64 = false;
  std::string name = "model.gguf";
  std::string front;       // before the first entry, counted in the offsets
  std::string late_front;  // put in front of the finished file, not counted
  uint32_t padding = 0;    // bytes of an extra field that push the data to an aligned place
};

// By APPNOTE 6.3, with a text file as first entry. Checksums are 0: readers of weights do not look.
std::string pack(const Zip& zip, const std::string& data) {
  const auto raw = [](auto n) { return Draft::raw(n); };
  std::string out = zip.front, directory;
  const auto add = [&](const std::string& name, const std::string& bytes, const Zip& how) {
    const uint64_t offset = out.size(), size = bytes.size();
    const std::string padding(how.padding, '\0');
    const std::string wide = raw(uint16_t(1)) + raw(uint16_t(24)) + raw(size) + raw(size) + raw(offset);
    const auto narrow = [&](uint64_t n) { return raw(how.zip64 ? UINT32_MAX : uint32_t(n)); };
    const std::string common = raw(uint16_t(20)) + raw(how.flags) + raw(how.method) + raw(uint32_t(0)) +
                               raw(uint32_t(0)) + narrow(size) + narrow(size) + raw(uint16_t(name.size()));
    out += "PK\3\4" + common + raw(uint16_t(padding.size())) + name + padding + bytes;
    directory += "PK\1\2" + raw(uint16_t(20)) + common + raw(uint16_t(how.zip64 ? wide.size() : 0)) +
                 raw(uint16_t(0)) + raw(uint32_t(0)) + raw(uint32_t(0)) + narrow(offset) + name +
                 (how.zip64 ? wide : "");
  };
  add("readme.txt", "hello", {});
  add(zip.name, data, zip);
  const uint64_t begin = out.size();
  out += directory;
  if (zip.zip64) {
    const uint64_t record = out.size();
    out += "PK\6\6" + raw(uint64_t(44)) + raw(uint16_t(45)) + raw(uint16_t(45)) + raw(uint64_t(0)) +
           raw(uint64_t(2)) + raw(uint64_t(2)) + raw(uint64_t(directory.size())) + raw(begin);
    out += "PK\6\7" + raw(uint32_t(0)) + raw(record) + raw(uint32_t(1));
  }
  out += "PK\5\6" + raw(uint32_t(0)) + raw(uint16_t(2)) + raw(uint16_t(2)) + raw(uint32_t(directory.size())) +
         raw(zip.zip64 ? UINT32_MAX : uint32_t(begin)) + raw(uint16_t(0));
  return zip.late_front + out;
}

class Polyglot : public ::testing::Test {
 protected:
  void expect_opens(const std::string& bytes) {
    write_file(folder_ / "model.llamafile", bytes);
    const auto reader = Reader::open(folder_ / "model.llamafile", {});
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ(reader->metadata().require<std::string>("general.name"), "inside");
    const TensorInfo* tensor = reader->tensor("t");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor->data), 32), std::string(32, 't'));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data) % 8, 0u);
  }
  std::string error_of(const std::string& bytes) {
    write_file(folder_ / "model.llamafile", bytes);
    const auto reader = Reader::open(folder_ / "model.llamafile", {});
    if (reader) return "no error";
    EXPECT_EQ(reader.error().code, Code::kBadData);
    return reader.error().message;
  }
  TempDir folder_;
};

}  // namespace

TEST_F(Polyglot, AStoredEntryIsReadWhereverItBegins) {
  for (const bool zip64 : {false, true}) {
    for (uint32_t padding = 0; padding < 8; padding++) {  // one of these is aligned, seven are copied
      expect_opens(pack({.zip64 = zip64, .front = "MZqFpD='\n", .padding = padding}, model()));
      expect_opens(pack({.zip64 = zip64, .late_front = "#!/bin/sh\n", .padding = padding}, model()));
    }
    expect_opens(pack({.zip64 = zip64, .front = std::string(300000, 'x')}, model()));
  }
}

TEST_F(Polyglot, PythonsZipfileWritesWhatWeRead) {
  write_file(folder_ / "m.gguf", model());
  const std::string command = "cd '" + folder_.path().string() +
                              "' && printf 'MZ stub' > out && python3 -c \"import zipfile; "
                              "zipfile.ZipFile('out', 'a').write('m.gguf')\"";
  ASSERT_EQ(std::system(command.c_str()), 0);
  expect_opens(read_file(folder_ / "out"));
}

TEST_F(Polyglot, RefusesByNameWhatCannotBeMapped) {
  EXPECT_NE(error_of(pack({.method = 8, .front = "MZ"}, model())).find("model.gguf is compressed (method 8)"),
            std::string::npos);
  EXPECT_NE(error_of(pack({.flags = 1}, model())).find("model.gguf is encrypted"), std::string::npos);
  EXPECT_NE(error_of(pack({.name = "a.txt"}, model())).find("without a .gguf entry"), std::string::npos);
}

TEST_F(Polyglot, DamagedDirectoriesAreErrors) {
  for (const bool zip64 : {false, true}) {
    const std::string good = pack({.zip64 = zip64, .front = "MZ"}, model());
    for (size_t at = good.size() - 220; at < good.size(); at++) {
      for (const char value : {'\0', '\x7f', '\xff'}) {
        std::string bad = good;
        bad[at] = value;
        const auto reader = Reader::open_memory(bytes_of(bad), "bad", {});
        if (!reader) {
          EXPECT_EQ(reader.error().code, Code::kBadData);
        }
      }
    }
  }
}

TEST(C67, APickleIsRefusedByItsContentWhateverItsName) {
  const TempDir folder;
  const std::string protocol4 = std::string("\x80\x04\x95\x10\0\0\0\0\0\0\0", 11) + "}\x94.";
  const std::string protocol0 = "(dp0\nS'a'\np1\nI1\ns.";
  const std::string archive = pack({.name = "archive/data.pkl"}, protocol4);
  for (const std::string& bytes : {protocol4, protocol0, archive}) {
    for (const char* name : {"w.bin", "w.pt", "w.safetensors", "w.gguf"}) {
      write_file(folder / name, bytes);
      const auto gguf = Reader::open(folder / name, {});
      const auto safetensors = Safetensors::open(folder / name);
      ASSERT_FALSE(gguf);
      ASSERT_FALSE(safetensors);
      for (const Error& error : {gguf.error(), safetensors.error()}) {
        EXPECT_EQ(error.code, Code::kBadData);
        EXPECT_NE(error.message.find("is a pickle"), std::string::npos) << error.message;
        EXPECT_NE(error.message.find(name), std::string::npos) << error.message;
      }
    }
  }
}

}  // namespace juno::gguf::testing
