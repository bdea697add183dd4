// SPDX-License-Identifier: Apache-2.0
// The demo model, linked into the program so that a first chat needs no download.
#pragma once
#include <cstdint>
#include <span>

namespace juno::cli {

inline constexpr const char* kDemoModelName = "juno-demo-23m.Q8_0.gguf (built in)";
std::span<const uint8_t> demo_model();

}  // namespace juno::cli
