// SPDX-License-Identifier: Apache-2.0
#include "dialect/call_form.h"
#include "dialect/json_text.h"
#include "grammar/free_text.h"

namespace juno::dialect {
namespace {

// What a value that is no free text says, in JSON. Models write some words as Python does; what is no JSON is
// text.
std::string json_of(const std::string& written, const Json* schema) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  const bool text = schema && schema->is_object() && schema->value("type", Json()) == "string";
  const Json value = Json::parse(written, nullptr, false);
  if (!value.is_discarded() && (!text || value.is_string())) return written;
  if (!text) {
    for (const auto& [python, json] : kWords) {
      if (written == python) return std::string(json);
    }
  }
  return '"' + json_escaped(written) + '"';
}

}  // namespace

Task<bool> XmlForm::read(CallReader& reader) const {
  Stream& in = reader.in;
  co_await skip_blanks(in);
  const Tool* const tool = reader.find(co_await read_name(in));
  if (!tool) co_return false;
  if (!co_await accept_words(in, tags_.name_end)) co_return false;
  reader.out.call(tool->name);
  reader.out.arguments("{");
  for (bool first = true;; first = false) {
    const bool more = co_await accept_words(in, tags_.key);
    if (!more) break;
    std::string key;
    if (!co_await read_until(in, tags_.key_end, [&](std::string_view text) { key += text; })) co_return false;
    if (!co_await accept_words(in, tags_.value)) co_return false;
    reader.out.arguments(fmt::format("{}\"{}\": ", first ? "" : ", ", json_escaped(key)));
    if (!co_await read_argument(reader, *tool, key)) co_return false;
  }
  if (!co_await accept_words(in, tags_.end)) co_return false;
  reader.out.arguments("}");
  co_return true;
}

Task<bool> XmlForm::read_argument(CallReader& reader, const Tool& tool, const std::string& key) const {
  if (tags_.lines) co_await accept(reader.in, "\n");
  const Json* const schema = property_of(tool, key);
  if (schema && is_free_text(*schema)) {
    reader.out.arguments("\"");
    if (!co_await read_text(reader)) co_return false;
    reader.out.arguments("\"");
    co_return true;
  }
  const auto written = co_await read_value_text(reader.in);
  if (written) reader.out.arguments(json_of(*written, schema));
  co_return written.has_value();
}

// Text as it is, up to the tag; the last line end belongs to the tag.
Task<bool> XmlForm::read_text(CallReader& reader) const {
  std::string line_end;
  const Put put = [&](std::string_view text) {
    if (text.empty()) return;
    reader.out.arguments(json_escaped(line_end));
    line_end.clear();
    if (tags_.lines && text.back() == '\n') {
      line_end = "\n";
      text.remove_suffix(1);
    }
    reader.out.arguments(json_escaped(text));
  };
  co_return co_await read_until(reader.in, tags_.value_end, put);
}

// A value that may be JSON: in JSON the tag may stand within quotes.
Task<std::optional<std::string>> XmlForm::read_value_text(Stream& in) const {
  const size_t begin = in.at();
  std::string text;
  const Put put = [&](std::string_view piece) { text += piece; };
  co_await skip_blanks(in);
  const bool structured =
      !in.rest().empty() && std::string_view("{[\"").find(in.rest()[0]) != std::string_view::npos;
  bool whole = structured;
  if (whole) whole = co_await read_json(in, put);
  if (whole) whole = co_await accept_words(in, tags_.value_end);
  if (whole) co_return text;
  text.clear();
  in.go_to(begin);
  if (!co_await read_until(in, tags_.value_end, put)) co_return std::nullopt;
  if (tags_.lines && text.ends_with('\n')) text.pop_back();
  co_return text;
}

NodeId XmlForm::write(CallWriter& writer, NodeId next) const {
  grammar::Builder& to = writer.to;
  const std::string_view line = tags_.lines ? "\n" : "";
  return writer.named([&](const Tool& tool) {
    const auto write = [&](const std::string& name, NodeId then) {
      const std::string end = std::string(line) + std::string(tags_.value_end);
      const NodeId after = to.literal("\n", then);
      const Json& schema = *property_of(tool, name);
      NodeId value = to.never();
      if (!is_free_text(schema)) {
        value = writer.value(tool, pointer_of(name), to.literal(end, after));
      } else if (!schema.contains("enum")) {
        value = grammar::text_until(to, end, grammar::Ending::kMark, after);
      } else {
        for (const Json& word : schema["enum"]) {
          if (word.is_string()) value = to.either(to.literal(word.get<std::string>() + end, after), value);
        }
      }
      return to.literal(fmt::format("{}{}{}{}{}", tags_.key, name, tags_.key_end, tags_.value, line), value);
    };
    const NodeId end = to.literal(tags_.end, next);
    return to.literal(fmt::format("{}\n", tags_.name_end), writer.properties(tool, write, "", end));
  });
}

}  // namespace juno::dialect
