// SPDX-License-Identifier: Apache-2.0
#include "api/version.h"

#include <fmt/format.h>

namespace juno::api {

std::string version_text() {
  return fmt::format("juno {}, numerics contract {}, activation profiles int8 (default) and int8x2", kVersion,
                     kNumericsVersion);
}

}  // namespace juno::api
