// SPDX-License-Identifier: Apache-2.0
#include "dialect/call_form.h"
#include "dialect/json_text.h"
#include "dialect/loose_value.h"
#include "grammar/free_text.h"

namespace juno::dialect {

Task<bool> LooseForm::read(CallReader& reader) const {
  Stream& in = reader.in;
  const Put put = [&](std::string_view text) { reader.out.arguments(text); };
  co_await skip_blanks(in);
  const Tool* const tool = reader.find(co_await read_name(in));
  if (!tool) co_return false;
  if (!co_await accept(in, marks_.open)) co_return false;
  reader.out.call(tool->name);
  put("{");
  for (bool first = true;; first = false) {
    const bool closed = co_await accept_words(in, marks_.close);
    if (closed) break;
    if (!first) {
      if (!co_await accept_words(in, ",")) co_return false;
    }
    co_await skip_blanks(in);
    std::string key;
    if (!co_await read_until(in, marks_.assign, [&](std::string_view text) { key += text; })) co_return false;
    put(fmt::format("{}\"{}\": ", first ? "" : ", ", json_escaped(without_blanks_at_end(key))));
    if (!co_await read_loose_value(in, marks_.quote, put)) co_return false;
  }
  put("}");
  co_return true;
}

NodeId LooseForm::write(CallWriter& writer, NodeId next) const {
  grammar::Builder& to = writer.to;
  return writer.named([&](const Tool& tool) {
    const auto write = [&](const std::string& name, NodeId then) {
      const Json& schema = *property_of(tool, name);
      const bool quoted = !marks_.quote.empty() && is_free_text(schema);
      NodeId value = to.never();
      if (!quoted) {
        value = writer.value(tool, pointer_of(name), then);
      } else if (!schema.contains("enum")) {
        value = to.literal(marks_.quote, grammar::text_until(to, marks_.quote, grammar::Ending::kMark, then));
      } else {
        for (const Json& word : schema["enum"]) {
          if (!word.is_string()) continue;
          const std::string text = fmt::format("{0}{1}{0}", marks_.quote, word.get<std::string>());
          value = to.either(to.literal(text, then), value);
        }
      }
      return to.literal(name + std::string(marks_.assign), value);
    };
    const NodeId close = to.literal(marks_.close, next);
    return to.literal(marks_.open, writer.properties(tool, write, marks_.between, close));
  });
}

}  // namespace juno::dialect
