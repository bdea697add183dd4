// SPDX-License-Identifier: Apache-2.0
// Does not compile alone, on purpose: it leaves <vector> to whoever includes it.
#pragma once

inline int size(const std::vector<int>& v) { return static_cast<int>(v.size()); }
