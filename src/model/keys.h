// SPDX-License-Identifier: Apache-2.0
// Reading the keys "<architecture>.…": each with the range it may have. What is missing or wrong is
// collected, so that one error names all of it; what was never asked for can be listed.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"

namespace juno::model {

// What a file lacks or has wrong, one sentence a name.
class Faults {
 public:
  void add(std::string_view name, std::string sentence);
  // Fails with everything that was added, as "[model] FILE: …; …".
  void raise(const std::string& file) const;

 private:
  std::set<std::string, std::less<>> names_;
  std::vector<std::string> sentences_;
};

// Names joined by commas for a message; of very many, the first and how many more.
std::string listed(const std::vector<std::string>& names);

struct Range {
  int64_t least = 0, most = 0;
};

// Keys are given without "<architecture>.". A value that is missing or wrong is noted, and a harmless one
// returned.
class Keys {
 public:
  Keys(const gguf::Metadata& metadata, std::string_view architecture, Faults& faults);

  int64_t integer(std::string_view key, Range range);  // required
  int64_t integer(std::string_view key, Range range, int64_t fallback);
  double positive(std::string_view key);  // required, finite and above 0
  double positive(std::string_view key, double fallback);
  std::string text(std::string_view key);  // "" when absent
  bool flag(std::string_view key, bool fallback);
  // One boolean a layer: an array of them, or the period whose last layer is false.
  std::vector<bool> layers(std::string_view key, int count, int64_t fallback_period);

  // A key that only files have which this architecture would compute wrongly: a fault when it is there.
  void refuse(std::string_view key, std::string_view sentence);

  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  void fault(std::string_view key, std::string_view sentence);  // the sentence goes on after the key's name
  bool asked(std::string_view full_key) const { return asked_.contains(full_key); }

 private:
  const gguf::Value* find(std::string_view key, bool required);

  const gguf::Metadata& metadata_;
  std::string prefix_;
  Faults& faults_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace juno::model
