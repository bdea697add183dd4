// SPDX-License-Identifier: Apache-2.0
// What the tests of dialects share: templates, tools, and pieces put together.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dialect/dialect.h"

namespace juno::dialect {

using Json = nlohmann::ordered_json;

inline std::string read_file(const std::string& path) {
  std::ifstream in(JUNO_SOURCE_DIR "/tests/" + path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::unique_ptr<Dialect> dialect_of(const std::string& model) {
  return find_dialect(read_file("data/templates/" + model + ".jinja"));
}

// The tools of examples: names and schemas, which must outlive what is made.
inline ToolUse use_of(const Json& tools, Choice choice = Choice::kAuto) {
  ToolUse use;
  for (const auto& [name, schema] : tools.items()) use.tools.push_back({name, &schema});
  use.choice = choice;
  return use;
}

// Pieces joined: {"reasoning": …, "content": …, "calls": [[name, arguments], …]}, what is empty left out.
inline Json joined(const std::vector<Piece>& pieces) {
  Json all = Json::object();
  for (const Piece& p : pieces) {
    const char* const key = p.kind == Piece::Kind::kReasoning ? "reasoning" : "content";
    if (p.kind == Piece::Kind::kCall) {
      EXPECT_EQ(p.call, static_cast<int>(all["calls"].size()));
      all["calls"].push_back({p.text, ""});
    } else if (p.kind == Piece::Kind::kArguments) {
      Json& call = all["calls"].at(static_cast<size_t>(p.call));
      call[1] = call[1].get<std::string>() + p.text;
    } else {
      all[key] = all.value(key, "") + p.text;
    }
  }
  return all;
}

inline void append(std::vector<Piece>& to, std::vector<Piece>&& more) {
  for (Piece& p : more) to.push_back(std::move(p));
}

}  // namespace juno::dialect
