// SPDX-License-Identifier: Apache-2.0
// Does what the sanitizer of its build must report, so that none can be off unseen:
//   faults overflow|undefined|leak|race
#include <climits>
#include <cstddef>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

namespace {

int overflow() {
  const std::vector<int> values(4);
  const volatile size_t past = values.size();
  return values.data()[past];
}

int undefined() {
  volatile int most = INT_MAX;
  return most + 1;
}

int leak() {
  static int* volatile kept = new int(1);
  kept = nullptr;
  return 0;
}

int race() {
  int count = 0;
  const auto add = [&count] { ++count; };
  std::thread other(add);
  add();
  other.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using Fault = int (*)();
  const std::map<std::string_view, Fault> faults = {
      {"overflow", overflow}, {"undefined", undefined}, {"leak", leak}, {"race", race}};
  const auto fault = faults.find(argc > 1 ? argv[1] : "");
  return fault == faults.end() ? 2 : fault->second() & 0;
}
