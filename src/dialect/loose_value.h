// SPDX-License-Identifier: Apache-2.0
// Values as models write them outside JSON: text in either kind of quotes or between marks, True and None,
// names without quotes.
#pragma once
#include <string_view>

#include "dialect/stream.h"

namespace juno::dialect {

// One value, put as JSON. quote: the mark on both sides of text that stands as it is; "" where there is none.
// False where it is none or the text ends inside it.
Task<bool> read_loose_value(Stream& in, std::string_view quote, const Put& put);

}  // namespace juno::dialect
