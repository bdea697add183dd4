// SPDX-License-Identifier: Apache-2.0
// Source to Template. What the interpreter does not know (a tag, a filter, a function …) is an error here.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/jinja_ast.h"

namespace juno::tokenizer::jinja {

// Throws Error naming `name`, line and column.
std::unique_ptr<const Template> parse(std::string_view source, std::string name);

}  // namespace juno::tokenizer::jinja
