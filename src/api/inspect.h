// SPDX-License-Identifier: Apache-2.0
// What a GGUF file holds and needs, as JSON: the form of `juno inspect --json`, documented there.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "base/log.h"

namespace juno::api {

// {file, version, parts, bytes, alignment, parameters, architecture,
//  metadata: {key: value}, tensors: [{name, type, shape, bytes}], types: [{type, tensors, parameters,
//  bytes}], memory: {weights, kv_bytes_per_token, contexts: [{context, kv, total}]} or {unknown: reason}}
// Shapes are [planes,] rows, cols: the file's order reversed. Arrays longer than `longest` items are shown as
// {type, count, first}. Sizes are bytes.
Result<nlohmann::ordered_json> inspect(const std::string& path, size_t longest, const Log& log);

}  // namespace juno::api
