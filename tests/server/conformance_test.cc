// SPDX-License-Identifier: Apache-2.0
// docs/openai.md is what the tables say. JUNO_WRITE_DOCS=1 writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "server/openapi.h"

namespace juno::server {
namespace {

constexpr const char* kHead =
    R"(# Fields: honoured, no-op or refused

This page is written from the tables that every request is held against: `JUNO_WRITE_DOCS=1 build/dev/tests/server/server_test
--gtest_filter=Conformance.*` writes it anew, and a test compares it. Nothing is dropped in silence:

- **yes**: the field does what its API says. Beside it: what absence means.
- **no-op**: only the values named are taken, because they ask for nothing more than what happens anyway; others are refused.
- **refused**: `null` alone is taken; anything else is 400 `unsupported_parameter`.
- **–**: not known to this route: 400 `unknown_parameter`, which names the route that takes it where there is one.

A value that is no value of its kind is `invalid_type`, a required field that is absent `missing_required_parameter`; the last
column has what else can be wrong with it. `GET /openapi.json` says the same to programs.
)";

struct Table {
  const char* title;
  std::vector<const char*> paths;
};
const Table kTables[] = {
    {"Replies, as OpenAI's clients ask for them",
     {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings"}},
    {"Replies, as Anthropic's clients ask for them", {"/v1/messages", "/v1/messages/count_tokens"}},
    {"Routes of our own",
     {"/v1/inference", "/v1/inference/stream", "/v1/tokenize", "/v1/detokenize", "/v1/apply-template"}},
};

struct Row {
  std::map<std::string, std::string> cells;  // by route
  std::set<std::string> codes;
};

struct Rows {
  std::vector<std::string> order;
  std::map<std::string, Row> rows;

  Row& at(const std::string& name) {
    if (!rows.count(name)) order.push_back(name);
    return rows[name];
  }
};

void add_codes(const Form& form, std::set<std::string>& to) {
  const bool whole = form.kind == Kind::kInteger;
  if (whole || form.kind == Kind::kNumber) {
    const std::string kind = whole ? "integer" : "decimal";
    to.insert({kind + "_below_min_value", kind + "_above_max_value"});
  }
  if (form.kind == Kind::kString && !form.words.empty()) {
    to.insert("invalid_value");
    if (!form.refused.empty()) to.insert("unsupported_value");
  } else if (form.kind == Kind::kString) {
    if (form.chars != Chars::kAny) to.insert("invalid_value");
    if (form.chars != Chars::kName && form.least > 0) to.insert("empty_string");
    if (form.chars != Chars::kName && form.most != Form::kMost) to.insert("string_above_max_length");
  }
  if (form.kind == Kind::kArray) {
    if (form.least > 0) to.insert("empty_array");
    if (form.most != Form::kMost) to.insert("array_above_max_length");
  }
  if (form.kind == Kind::kObject && !form.fields && form.most != Form::kMost)
    to.insert("array_above_max_length");
}

void add_forms(Rows& rows, const std::string& route, const std::string& name, const Forms& forms);

std::string cell_of(const Field& field) {
  if (field.stand == Field::Stand::kUnsupported) return "refused";
  if (field.stand == Field::Stand::kElsewhere) return "–";
  if (field.stand == Field::Stand::kNoOp) {
    std::string values;
    for (const Json& value : field.only) values += (values.empty() ? "`" : ", `") + to_text(value) + "`";
    return "no-op: " + values;
  }
  if (!field.alias_of.empty()) return "yes, as `" + field.alias_of + "`";
  if (field.required) return "yes, required";
  return field.fallback.empty() ? "yes" : "yes (" + field.fallback + ")";
}

void add_fields(Rows& rows, const std::string& route, const std::string& above, const Fields& fields) {
  for (const Field& field : fields) {
    const std::string name = above.empty() ? field.name : above + "." + field.name;
    Row& row = rows.at(name);
    row.cells.emplace(route, cell_of(field));
    if (field.stand == Field::Stand::kUnsupported) row.codes.insert("unsupported_parameter");
    if (field.stand == Field::Stand::kNoOp) row.codes.insert(field.code);
    if (!field.alias_of.empty()) row.codes.insert("invalid_value");
    add_forms(rows, route, name, field.forms);
  }
}

void add_forms(Rows& rows, const std::string& route, const std::string& name, const Forms& forms) {
  for (const Form& form : forms) {
    add_codes(form, rows.at(name).codes);
    if (form.kind == Kind::kArray) add_forms(rows, route, name + "[]", form.items);
    if (form.fields) add_fields(rows, route, name, *form.fields);
    for (const Form::Variant& variant : form.variants) add_fields(rows, route, name, *variant.fields);
  }
}

std::string page() {
  std::map<std::string, const Fields*> by_path;
  for (const Described& route : described_routes())
    if (route.fields) by_path[route.path] = &route.fields();
  std::string out = kHead;
  for (const Table& table : kTables) {
    Rows rows;
    out += fmt::format("\n## {}\n| field |", table.title);
    std::string line = "|---|";
    for (const char* path : table.paths) {
      add_fields(rows, path, "", *by_path.at(path));
      out += fmt::format(" {} |", path);
      line += "---|";
    }
    out += " codes |\n" + line + "---|\n";
    for (const std::string& name : rows.order) {
      const Row& row = rows.rows[name];
      if (row.cells.empty()) continue;  // an item, whose fields follow
      out += fmt::format("| {} |", name);
      for (const char* path : table.paths)
        out += fmt::format(" {} |", row.cells.count(path) ? row.cells.at(path) : "–");
      out += fmt::format(" {} |\n", fmt::join(row.codes, " "));
    }
  }
  return out;
}

}  // namespace

TEST(Conformance, ThePageSaysWhatTheTablesSay) {
  const std::string path = JUNO_SOURCE_DIR "/docs/openai.md";
  if (std::getenv("JUNO_WRITE_DOCS")) std::ofstream(path) << page();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == page()) << "docs/openai.md is not what the tables say";
}

TEST(Conformance, EveryRouteWithABodyIsOnThePage) {
  std::set<std::string> on;
  for (const Table& table : kTables) on.insert(table.paths.begin(), table.paths.end());
  for (const Described& route : described_routes())
    if (route.fields && std::string_view(route.path).starts_with("/v1/"))
      EXPECT_TRUE(on.count(route.path)) << route.path;
}

}  // namespace juno::server
