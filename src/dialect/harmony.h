// SPDX-License-Identifier: Apache-2.0
// The dialect of gpt-oss: a reply is a row of messages, each in a channel and perhaps to a tool.
#pragma once
#include <memory>

#include "dialect/dialect.h"

namespace juno::dialect {

std::unique_ptr<Dialect> make_harmony();

}  // namespace juno::dialect
