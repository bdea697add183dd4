// SPDX-License-Identifier: Apache-2.0
// The versions that results are bound to.
#pragma once

namespace juno {

inline constexpr const char* kVersion = "0.1.0";  // CMakeLists.txt reads it here
inline constexpr int kNumericsVersion = 1;        // docs/numerics.md

}  // namespace juno
