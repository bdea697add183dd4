// SPDX-License-Identifier: Apache-2.0
// A place in the held text is decided when it begins a whole stop string, or can no longer begin one.
#include "engine/stop.h"

#include <utility>

namespace juno::engine {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

bool StopMatcher::push(std::string_view text, std::string& out) {
  if (stop_) return false;
  held_ += text;
  release(out, true);
  return !stop_;
}

void StopMatcher::flush(std::string& out) {
  if (!stop_) release(out, false);
}

// Moves what is certain from held_ to `out`. more: text may follow, so a beginning of a stop string is not
// certain.
void StopMatcher::release(std::string& out, bool more) {
  size_t at = 0;
  for (; at < held_.size(); ++at) {
    const std::string_view rest = std::string_view(held_).substr(at);
    bool begins = false;
    for (const std::string& stop : stops_) {
      if (!stop_ && rest.starts_with(stop)) stop_ = stop;
      begins = begins || stop.starts_with(rest);
    }
    if (stop_ || (begins && more)) break;
  }
  out.append(held_, 0, at);
  held_.erase(0, stop_ ? held_.size() : at);
}

}  // namespace juno::engine
