// SPDX-License-Identifier: Apache-2.0
// What a result is bound to, in words.
#pragma once
#include <string>

#include "base/version.h"

namespace juno::api {

// "0.1.0, numerics 1 (activations int8 or int8x2)": what results are bound to.
std::string version_text();

}  // namespace juno::api
