// SPDX-License-Identifier: Apache-2.0
// Python's str operations on Text; provenance follows every character.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/jinja_interpreter.h"

namespace juno::tokenizer::jinja {

// count < 0: all.
Text replace(Interpreter& in, const Text& s, const Text& old, const Text& fresh, int64_t count);
// At every run of white space where separator is null. most < 0: all; from the right: the last ones.
std::vector<Text> split(Interpreter& in, const Text& s, const Text* separator, int64_t most);
std::vector<Text> split_right(Interpreter& in, const Text& s, const Text* separator, int64_t most);
std::vector<Text> split_lines(const Text& s, bool keep_ends);
Text strip(const Text& s, Side side, const Text* chars);

Text upper(const Text& s);
Text lower(const Text& s);
Text capitalize(const Text& s);
Text title(const Text& s);         // str.title: a word is a run of letters
Text filter_title(const Text& s);  // jinja's: a word starts after white space or one of -({[<

// Padded to a width in characters; side says where the text goes: kBoth centres it.
Text pad(Interpreter& in, const Text& s, int64_t width, Side side, const Text& fill);
Text join(Interpreter& in, const Text& separator, const std::vector<Text>& parts);

Text str_format(Interpreter& in, const Text& format, Args& args);

}  // namespace juno::tokenizer::jinja
