// SPDX-License-Identifier: Apache-2.0
// What a route takes, as data: from one table come the check of a request, /openapi.json and docs/openai.md.
// Nothing is dropped in silence: a field is honoured, or the request is refused with its name.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/json.h"
#include "server/refusal.h"

namespace juno::server {

struct Field;
using Fields = std::vector<Field>;
using FieldsPtr = std::shared_ptr<const Fields>;

enum class Kind : uint8_t { kBoolean, kInteger, kNumber, kString, kArray, kObject };

// Characters that a string may consist of.
enum class Chars : uint8_t {
  kAny,
  kName,     // A-Z a-z 0-9 _ -; whatever is wrong with a name is an invalid_value
  kSession,  // A-Z a-z 0-9 . _ : -
};

// One form that a value may take. Of the members those count that its kind has.
struct Form {
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

  Kind kind = Kind::kString;
  double low = std::numeric_limits<double>::lowest();  // kNumber
  double high = std::numeric_limits<double>::max();
  bool open_low = false;                // low itself is outside
  int64_t least = 0, most = kMost;      // kInteger: the range; kString: bytes; kArray: items; kObject: pairs
  int64_t longest_key = kMost;          // kObject without fields: characters
  bool characters = false;              // kString: least and most count characters
  Chars chars = Chars::kAny;            // kString
  std::vector<std::string> words = {};  // kString: one of these
  std::vector<std::string> refused = {};  // kString: known words that are not supported here
  std::vector<Form> items = {};           // kArray: each takes one of these; none: anything
  FieldsPtr fields = {};                  // kObject: exactly these; null: any keys
  std::vector<Form> values = {};          // kObject without fields: each takes one of these; none: anything

  // kObject whose fields depend on a word: the field named `selector` chooses among `variants`, whose fields
  // come beside `fields`; where it is absent the first is meant.
  struct Variant {
    std::string word;
    FieldsPtr fields;
  };
  std::string selector = {};
  std::vector<Variant> variants = {};
};
using Forms = std::vector<Form>;

struct Field {
  enum class Stand : uint8_t {
    kHonoured,
    kNoOp,         // `only` asks for nothing and is accepted, whatever else its form allows is `code`
    kUnsupported,  // null alone is accepted
    kElsewhere,    // unknown here; `about` says where it is known
  };

  std::string name;
  Forms forms = {};           // none: any value
  std::string fallback = {};  // what absence means, in words
  std::string about = {};     // one line, also the hint of a refusal
  bool required = false;
  bool decides = false;       // looked at first: where it is wrong the rest of its object is not looked at
  std::string alias_of = {};  // the same as this field, which must not stand beside it
  bool may_repeat = false;    // an alias that may stand beside its field with an equal value
  Stand stand = Stand::kHonoured;
  std::vector<Json> only = {};
  std::string code = "unsupported_value";
};

// Forms.
Forms boolean();
Forms integer(int64_t least, int64_t most);
Forms number(double low, double high);
Forms number_above(double low, double high);
Forms text(int64_t least = 0, int64_t most = Form::kMost);
Forms text_of(Chars chars, int64_t least, int64_t most);
Forms words(std::vector<std::string> words, std::vector<std::string> refused = {});
Forms list(Forms items, int64_t least = 0, int64_t most = Form::kMost);
Forms object(Fields fields);
// fields: those that all variants have, the selector among them, as words().
Forms variants(Fields fields, std::string selector, std::vector<std::pair<std::string, Fields>> by_word);
Forms map(Forms values = {});  // any keys
Forms either(Forms a, const Forms& b);

// Fields.
Field required(std::string name, Forms forms, std::string about);
Field optional(std::string name, Forms forms, std::string fallback, std::string about);
Field alias(std::string name, std::string of, Forms forms, std::string about);
Field no_op(std::string name, Forms forms, std::vector<Json> only, std::string about);
Field unsupported(std::string name, std::string hint = "");
Field elsewhere(std::string name, std::string route);
Field deciding(Field field);
Fields joined(Fields a, const Fields& b);  // a's fields win where a name stands in both

// The steps of a check, in order: of several faults the earliest step's is reported, then the first met.
enum class Step : uint8_t { kRequired, kTypes, kRanges, kContradictions };

// Where a value stands in the body: "messages[2].content[0].type". Cheap until it is written out.
struct Path {
  const Path* above = nullptr;
  std::string_view key = {};  // or
  int64_t index = -1;
  std::string text() const;
};

class Check {
 public:
  // warn_unknown: unknown fields are collected instead of refused.
  explicit Check(bool warn_unknown = false) : warn_unknown_(warn_unknown) {}

  // The body of a request; one that is no object is a fault without a path.
  void body(const Json& body, const Fields& fields);

  // For what a table cannot say. Kept if it is the earliest so far.
  void fault(Step step, std::string_view code, Param param, std::string message);
  bool wants(Step step) const { return !found_ || step < found_step_; }  // whether fault() would keep it

  // Throws the earliest Refusal, if any.
  void finish() const;
  const std::vector<std::string>& ignored() const { return ignored_; }  // paths, with warn_unknown

 private:
  friend class Walk;
  bool warn_unknown_;
  std::optional<Refusal> found_;
  Step found_step_ = Step::kContradictions;
  std::vector<std::string> ignored_;
};

// The fields of a checked object, by name: null is absence, and an alias stands for its field.
class Values {
 public:
  Values(const Json& object, const Fields& fields) : object_(object), fields_(fields) {}

  const Json* find(std::string_view name) const;  // null: absent
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::string sent_as(std::string_view name) const;  // the name or the alias that stands in the object

  bool flag(std::string_view name, bool fallback = false) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;

 private:
  const Json& object_;
  const Fields& fields_;
};

}  // namespace juno::server
