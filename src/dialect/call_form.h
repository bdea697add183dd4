// SPDX-License-Identifier: Apache-2.0
// The ways in which models write one call: a reader, and the grammar of what it reads.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "dialect/dialect.h"
#include "dialect/output.h"
#include "dialect/stream.h"
#include "grammar/automaton.h"

namespace juno::dialect {

using Json = nlohmann::ordered_json;
using grammar::NodeId;

// What a call is read from and told to.
struct CallReader {
  Stream& in;
  Output& out;
  const ToolUse& use;

  // The tool that may be called by this name, or null.
  const Tool* find(std::string_view name) const;
};

// What the grammar of a call is built from.
class CallWriter {
 public:
  CallWriter(grammar::Builder& to, const ToolUse& use);

  grammar::Builder& to;

  // One of the tools: its name, then what `after` builds.
  NodeId named(const std::function<NodeId(const Tool&)>& after);
  // Its arguments as a JSON object.
  NodeId arguments(const Tool& tool, NodeId next);
  // A value of its schema at a JSON pointer.
  NodeId value(const Tool& tool, const std::string& pointer, NodeId next);
  // Its properties, in their order: write(name, next) builds one, `between` stands between two. Refuses a
  // schema that says more of the object than its properties.
  using Property = std::function<NodeId(const std::string& name, NodeId next)>;
  NodeId properties(const Tool& tool, const Property& write, std::string_view between, NodeId next);

 private:
  const ToolUse& use_;
  std::map<std::pair<std::string, std::string>, int> rules_;  // by tool and pointer
};

class CallForm {
 public:
  virtual ~CallForm() = default;
  // False where it is no call. Arguments need not be correct JSON.
  virtual Task<bool> read(CallReader& reader) const = 0;
  virtual NodeId write(CallWriter& writer, NodeId next) const = 0;
  // Texts that may hold control tokens.
  virtual std::vector<std::string_view> marks() const { return {}; }
};

// {"name": "f", "arguments": {…}}
class JsonForm : public CallForm {
 public:
  struct Keys {
    std::string_view name = "name", arguments = "arguments";
    std::string_view id_before = {}, id_after = {};  // of an id: a number before, nine letters after
  };
  explicit JsonForm(Keys keys) : keys_(keys) {}
  Task<bool> read(CallReader& reader) const override;
  NodeId write(CallWriter& writer, NodeId next) const override;

 private:
  Task<bool> read_member(CallReader& reader, std::string& name, std::string& early) const;
  Keys keys_;
};

// f[ARGS]{…}
class TaggedForm : public CallForm {
 public:
  struct Marks {
    std::string_view prefix, id, arguments;
    bool counted = false;  // the id is the call's number
  };
  explicit TaggedForm(Marks marks) : marks_(marks) {}
  Task<bool> read(CallReader& reader) const override;
  NodeId write(CallWriter& writer, NodeId next) const override;
  std::vector<std::string_view> marks() const override { return {marks_.id, marks_.arguments}; }

 private:
  Marks marks_;
};

// f, then each argument between tags of its own: text as it is, other values as JSON.
class XmlForm : public CallForm {
 public:
  struct Tags {
    std::string_view name_end, key, key_end, value, value_end, end;
    bool lines = false;  // values stand on lines of their own
  };
  explicit XmlForm(Tags tags) : tags_(tags) {}
  Task<bool> read(CallReader& reader) const override;
  NodeId write(CallWriter& writer, NodeId next) const override;
  std::vector<std::string_view> marks() const override {
    return {tags_.key, tags_.key_end, tags_.value, tags_.value_end, tags_.end};
  }

 private:
  Task<bool> read_argument(CallReader& reader, const Tool& tool, const std::string& key) const;
  Task<bool> read_text(CallReader& reader) const;
  Task<std::optional<std::string>> read_value_text(Stream& in) const;
  Tags tags_;
};

// f(key=value, …) or f{key:value, …}, the values as in Python, or with text between marks.
class LooseForm : public CallForm {
 public:
  struct Marks {
    std::string_view open, assign, between, close, quote;
  };
  explicit LooseForm(Marks marks) : marks_(marks) {}
  Task<bool> read(CallReader& reader) const override;
  NodeId write(CallWriter& writer, NodeId next) const override;
  std::vector<std::string_view> marks() const override { return {marks_.quote}; }

 private:
  Marks marks_;
};

// The JSON pointer of a property's schema.
std::string pointer_of(const std::string& property);
// The schema of a property, or null where none is declared.
const Json* property_of(const Tool& tool, const std::string& name);
// Whether a value is text and nothing but its being one of a list is asked of it.
bool is_free_text(const Json& schema);

}  // namespace juno::dialect
