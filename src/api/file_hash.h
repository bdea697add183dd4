// SPDX-License-Identifier: Apache-2.0
// A model file's name by its bytes.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "api/session.h"

namespace juno::api {

// {sha256, sha256_of}: of the whole file, or of its ends where it is too large to read. A split file stands
// for its first part. Throws Error.
nlohmann::ordered_json file_hash(const SessionOptions& options);

}  // namespace juno::api
