// SPDX-License-Identifier: Apache-2.0
#include "dialect/call_form.h"
#include "dialect/json_text.h"

namespace juno::dialect {
namespace {

NodeId digits(grammar::Builder& to, NodeId next) {
  grammar::Bytes digit;
  for (char c = '0'; c <= '9'; ++c) digit.set(static_cast<uint8_t>(c));
  return to.repeat([&](NodeId then) { return to.bytes(digit, then); }, 1, 3, next);
}

NodeId nine_letters(grammar::Builder& to, NodeId next) {
  grammar::Bytes letter;
  for (char c = '0'; c <= '9'; ++c) letter.set(static_cast<uint8_t>(c));
  for (char c = 'A'; c <= 'Z'; ++c) letter.set(static_cast<uint8_t>(c)).set(static_cast<uint8_t>(c + 32));
  return to.repeat([&](NodeId then) { return to.bytes(letter, then); }, 9, 9, next);
}

}  // namespace

Task<bool> JsonForm::read(CallReader& reader) const {
  Stream& in = reader.in;
  std::string name, early;  // early: arguments that came before the name
  if (!co_await accept_words(in, "{")) co_return false;
  for (bool more = true; more;) {
    if (!co_await read_member(reader, name, early)) co_return false;
    more = co_await accept_words(in, ",");
  }
  if (!co_await accept_words(in, "}")) co_return false;
  if (name.empty()) co_return false;
  if (reader.out.arguments_text().empty()) reader.out.arguments(early.empty() ? "{}" : early);
  co_return true;
}

Task<bool> JsonForm::read_member(CallReader& reader, std::string& name, std::string& early) const {
  Stream& in = reader.in;
  std::string key;
  co_await skip_blanks(in);
  if (!co_await read_json_string(in, key)) co_return false;
  if (!co_await accept_words(in, ":")) co_return false;
  co_await skip_blanks(in);
  if (key == keys_.name) {
    if (!name.empty()) co_return false;
    if (!co_await read_json_string(in, name)) co_return false;
    if (!reader.find(name)) co_return false;
    reader.out.call(name);
    co_return true;
  }
  const bool arguments = key == keys_.arguments;
  if (arguments && !(early.empty() && reader.out.arguments_text().empty())) co_return false;
  const Put put = [&](std::string_view text) {
    if (arguments && !name.empty()) reader.out.arguments(text);
    if (arguments && name.empty()) early += text;
  };
  co_return co_await read_json(in, put);
}

NodeId JsonForm::write(CallWriter& writer, NodeId next) const {
  grammar::Builder& to = writer.to;
  NodeId close = to.literal("}", next);
  if (!keys_.id_after.empty()) {
    const NodeId id = nine_letters(to, to.literal("\"}", next));
    close = to.either(to.literal(fmt::format(", \"{}\": \"", keys_.id_after), id), close);
  }
  const NodeId name = writer.named([&](const Tool& tool) {
    return to.literal(fmt::format("\", \"{}\": ", keys_.arguments), writer.arguments(tool, close));
  });
  if (keys_.id_before.empty()) return to.literal(fmt::format("{{\"{}\": \"", keys_.name), name);
  const NodeId after = to.literal(fmt::format("\", \"{}\": \"", keys_.name), name);
  return to.literal(fmt::format("{{\"{}\": \"", keys_.id_before), digits(to, after));
}

Task<bool> TaggedForm::read(CallReader& reader) const {
  Stream& in = reader.in;
  co_await accept_words(in, marks_.prefix);
  const std::string name = co_await read_name(in);
  if (!reader.find(name)) co_return false;
  bool has_id = !marks_.id.empty();
  if (has_id) has_id = co_await accept(in, marks_.id);
  if (has_id) co_await read_name(in);
  if (!co_await accept_words(in, marks_.arguments)) co_return false;
  reader.out.call(name);
  const Put put = [&](std::string_view text) { reader.out.arguments(text); };
  co_await skip_blanks(in);
  co_return co_await read_json(in, put);
}

NodeId TaggedForm::write(CallWriter& writer, NodeId next) const {
  grammar::Builder& to = writer.to;
  const NodeId name = writer.named([&](const Tool& tool) {
    const NodeId arguments = to.literal(marks_.arguments, writer.arguments(tool, next));
    if (marks_.id.empty()) return arguments;
    if (marks_.counted) return to.literal(marks_.id, digits(to, arguments));
    return to.either(to.literal(marks_.id, nine_letters(to, arguments)), arguments);
  });
  return to.literal(marks_.prefix, name);
}

}  // namespace juno::dialect
