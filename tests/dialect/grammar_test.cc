// SPDX-License-Identifier: Apache-2.0
// What the grammars allow, the parsers read as what was asked for.
#include <ctime>
#include <limits>
#include <map>
#include <random>

#include "dialect/support.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"

namespace juno::dialect {
namespace {

using grammar::Automaton;
using grammar::Matcher;
using grammar::State;

// Tools with what is hard: optional values, words, lists, nesting, text held to a pattern.
const char* const kTools = R"({
  "weather": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
      "unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["city"]},
  "clock": {"type": "object", "properties": {}},
  "edit_file": {"type": "object", "properties": {
      "lines": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
      "where": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
      "code": {"type": "string", "pattern": "^[a-z]{1,3}$"}}, "required": ["where", "code"],
      "$defs": {"place": {"type": "object", "properties": {"line": {"type": "number"}}, "required": ["line"]}}}})";

const char* const kWithTools[] = {
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use",
    "GLM-4.6",
    "Kimi-K2-Instruct",
    "LFM2-8B-A1B",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
    "Qwen-QwQ-32B",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "Qwen3-Coder",
    "Qwen3.5-4B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "google-gemma-4-31B-it",
    "ibm-granite-granite-3.3-2B-Instruct",
    "ibm-granite-granite-4.0",
    "meta-llama-Llama-3.1-8B-Instruct",
    "meta-llama-Llama-3.2-3B-Instruct",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "openai-gpt-oss-120b",
};

// How prompts end: the reply has its header before it, or its reasoning open.
std::string prompt_of(const std::string& model) {
  if (model == "openai-gpt-oss-120b") return "<|start|>assistant";
  if (model == "Qwen-QwQ-32B" || model == "Qwen3.5-4B") return "<|im_start|>assistant\n<think>\n";
  return "<|assistant|>";
}

// How many bytes lead from each node to its return, at least.
std::vector<size_t> distances(const Automaton& automaton) {
  constexpr size_t kFar = 1 << 20;
  std::vector<size_t> far(automaton.nodes.size(), kFar);
  const auto at = [&](const grammar::Node& n) -> size_t {
    switch (n.kind) {
      case grammar::Node::Kind::kBytes:
        return automaton.classes[n.a].any() ? 1 + far[n.b] : kFar;
      case grammar::Node::Kind::kSplit:
        return std::min(far[n.a], far[n.b]);
      case grammar::Node::Kind::kCall:
        return far[automaton.rules[n.a]] + far[n.b];
      case grammar::Node::Kind::kLoop:
        return static_cast<size_t>(n.min) * far[n.a] + far[n.b];
      case grammar::Node::Kind::kReturn:
        break;
    }
    return 0;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < far.size(); ++i) {
      const size_t better = std::min(at(automaton.nodes[i]), kFar);
      changed |= better < far[i];
      far[i] = std::min(far[i], better);
    }
  }
  return far;
}

// A text of the automaton, by chance; most steps go towards the end.
std::string walk(const Automaton& automaton, std::mt19937& random) {
  const Matcher matcher(automaton);
  const std::vector<size_t> far = distances(automaton);
  State state = matcher.start();
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    if (state.complete() && random() % 4 == 0) break;
    std::vector<uint8_t> ways;
    size_t nearest = std::numeric_limits<size_t>::max(), best = 0;
    for (const grammar::Thread& thread : state.threads) {
      if (thread.node == grammar::Thread::kEnded) continue;
      const grammar::Node& node = automaton.nodes[thread.node];
      grammar::Bytes bytes = automaton.classes[node.a];
      const grammar::Bytes ascii = bytes << 128 >> 128;
      if (ascii.any()) bytes = ascii;
      size_t skip = random() % bytes.count(), byte = 0;
      while (!bytes[byte] || skip-- > 0) ++byte;
      size_t left = far[node.b];
      for (const grammar::Frame& frame : thread.stack) left += far[automaton.nodes[frame.node].b];
      if (left < nearest) {
        nearest = left;
        best = ways.size();
      }
      ways.push_back(static_cast<uint8_t>(byte));
    }
    if (ways.empty()) break;
    const uint8_t byte = ways[random() % 10 < 8 ? best : random() % ways.size()];
    text += static_cast<char>(byte);
    state = matcher.step(state, byte);
  }
  EXPECT_TRUE(state.complete()) << text;
  return text;
}

Json read(const Dialect& dialect, const std::string& model, const ToolUse& use, const std::string& text) {
  const auto reader = dialect.parser(prompt_of(model), &use);
  std::vector<Piece> pieces = reader->push(text);
  append(pieces, reader->finish());
  return joined(pieces);
}

class Grammar : public testing::TestWithParam<const char*> {
 protected:
  void expect_valid_calls(const Json& pieces) const {
    for (const Json& call : pieces.value("calls", Json::array())) {
      const std::string arguments = call[1];
      ASSERT_TRUE(tools_.contains(call[0].get<std::string>())) << call;
      EXPECT_TRUE(schemas_.at(call[0]).matches(arguments)) << call;
    }
  }

  void SetUp() override {
    for (const auto& [name, schema] : tools_.items()) {
      automata_.push_back(std::make_unique<Automaton>(grammar::compile_json_schema(schema.dump())));
      schemas_.emplace(name, Matcher(*automata_.back()));
    }
  }

  const Json tools_ = Json::parse(kTools);
  std::vector<std::unique_ptr<Automaton>> automata_;
  std::map<std::string, Matcher> schemas_;
};

TEST_P(Grammar, OfRequiredCallsAllowsNothingElse) {
  const std::string model = GetParam();
  const auto dialect = dialect_of(model);
  std::mt19937 random(7);
  size_t several = 0;
  for (const bool parallel : {true, false}) {
    ToolUse use = use_of(tools_, Choice::kRequired);
    use.parallel = parallel;
    const Automaton automaton = take(dialect->grammar(prompt_of(model), use));
    for (int i = 0; i < 60; ++i) {
      const std::string text = walk(automaton, random);
      SCOPED_TRACE(text);
      for (const bool held : {true, false}) {
        use.held = held;
        const Json pieces = read(*dialect, model, use, text);
        ASSERT_TRUE(pieces.contains("calls")) << pieces;
        EXPECT_FALSE(pieces.contains("content")) << pieces;
        expect_valid_calls(pieces);
        EXPECT_TRUE(parallel || pieces["calls"].size() == 1);
        several += pieces["calls"].size() > 1;
      }
    }
  }
  const bool single = dialect->name() == "llama3" || dialect->name() == "harmony";
  EXPECT_EQ(several == 0, single);
}

TEST_P(Grammar, OfANamedCallAllowsThatAlone) {
  const std::string model = GetParam();
  const auto dialect = dialect_of(model);
  std::mt19937 random(8);
  ToolUse use = use_of(tools_, Choice::kNamed);
  use.name = "weather";
  const Automaton automaton = take(dialect->grammar(prompt_of(model), use));
  for (int i = 0; i < 30; ++i) {
    const Json pieces = read(*dialect, model, use, walk(automaton, random));
    for (const Json& call : pieces.at("calls")) EXPECT_EQ(call[0], "weather");
  }
}

// A text that may end inside a call would end in a call that breaks off.
TEST_P(Grammar, OfFreeRepliesHoldsTheCallsInThem) {
  const std::string model = GetParam();
  const auto dialect = dialect_of(model);
  ToolUse use = use_of(tools_, Choice::kRequired);
  const Automaton calls = take(dialect->grammar(prompt_of(model), use));
  use.choice = Choice::kAuto;
  const Automaton free = take(dialect->grammar(prompt_of(model), use));
  const Matcher matcher(free);
  std::mt19937 random(9);
  for (int i = 0; i < 15; ++i) {
    const std::string text = walk(calls, random);
    SCOPED_TRACE(text);
    EXPECT_TRUE(matcher.matches(text));
    const bool thinks = prompt_of(model).ends_with("<think>\n");
    EXPECT_EQ(Matcher(calls).matches("No. " + text), thinks);
    State state = matcher.start();
    for (size_t size = 1; size <= text.size(); ++size) {
      state = matcher.step(state, static_cast<uint8_t>(text[size - 1]));
      if (!state.complete()) continue;
      use.held = true;
      const Json pieces = read(*dialect, model, use, text.substr(0, size));
      use.held = false;
      EXPECT_EQ(read(*dialect, model, use, text.substr(0, size)), pieces);
      expect_valid_calls(pieces);
    }
    EXPECT_TRUE(read(*dialect, model, use, text).contains("calls"));
  }
}

TEST_P(Grammar, OfFreeRepliesTakesPlainText) {
  const std::string model = GetParam();
  const Automaton free = take(dialect_of(model)->grammar(prompt_of(model), use_of(tools_)));
  std::string text = "1 < 2, [x] and {\"a\": 1}.\n\nÜber <tool_";
  if (prompt_of(model).ends_with("<think>\n")) text = "Hm.</think>" + text;
  if (model == "openai-gpt-oss-120b") text = "<|channel|>final<|message|>" + text;
  EXPECT_TRUE(Matcher(free).matches(text));
}

TEST_P(Grammar, AroundContentHoldsItAndLeavesReasoningFree) {
  const std::string model = GetParam();
  const auto dialect = dialect_of(model);
  std::mt19937 random(11);
  const Automaton inner = grammar::compile_json_schema(R"({"enum": ["yes", "no"]})");
  const Automaton automaton = take(dialect->around(prompt_of(model), inner));
  for (int i = 0; i < 30; ++i) {
    const Json pieces = read(*dialect, model, ToolUse(), walk(automaton, random));
    EXPECT_TRUE(pieces.at("content") == "\"yes\"" || pieces.at("content") == "\"no\"") << pieces;
  }
}

INSTANTIATE_TEST_SUITE_P(Templates, Grammar, testing::ValuesIn(kWithTools), [](const auto& info) {
  std::string name = info.param;
  std::erase_if(name, [](char c) { return !isalnum(static_cast<uint8_t>(c)); });
  return name;
});

// Of processor time; code that is not optimised, or checked, has ten times as much.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr double kSeconds = 0.2;
#else
constexpr double kSeconds = 2;
#endif

TEST(C23, GrammarsOfManyToolsAreBuiltInTime) {
  Json tools = Json::object();
  for (int i = 0; i < 128; ++i) {
    Json properties = Json::object();
    for (int p = 0; p < 10; ++p) properties["property_" + std::to_string(p)] = {{"type", "string"}};
    tools["tool_" + std::to_string(i)] = {{"type", "object"}, {"properties", properties}};
  }
  for (const char* model : kWithTools) {
    const auto dialect = dialect_of(model);
    const std::clock_t begin = std::clock();
    const Automaton automaton = take(dialect->grammar(prompt_of(model), use_of(tools)));
    EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kSeconds) << model;
    EXPECT_LT(automaton.nodes.size() * sizeof(grammar::Node), size_t{64} << 20) << model;
  }
}

TEST(Grammars, OfLongFreeTextKeepTheirStateSmall) {
  const Json tools = Json::parse(kTools);
  for (const char* model : kWithTools) {
    const Automaton automaton = take(dialect_of(model)->grammar(prompt_of(model), use_of(tools)));
    const Matcher matcher(automaton);
    std::string text = model == std::string("openai-gpt-oss-120b") ? "<|channel|>final<|message|>" : "";
    State state = matcher.read(matcher.start(), text);
    for (int i = 0; i < 2000; ++i) state = matcher.read(std::move(state), "a <tool_cal [TOOL_ \n");
    ASSERT_FALSE(state.dead()) << model;
    EXPECT_LE(state.threads.size(), 8u) << model;
    for (const grammar::Thread& thread : state.threads) EXPECT_LE(thread.stack.size(), 2u) << model;
  }
}

TEST(Grammars, RefuseWhatTheyCannotHold) {
  const auto error = [](const char* model, const char* schema) {
    const Json tools = {{"f", Json::parse(schema)}};
    const auto result = dialect_of(model)->grammar("", use_of(tools));
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(error("Qwen3-Coder", R"({"anyOf": [{"type": "object"}]})"),
            "[dialect] schema at '': anyOf cannot be held to at the root, where this model writes properties "
            "one by one");
  EXPECT_EQ(error("Qwen-Qwen2.5-7B-Instruct", R"({"type": "string"})"),
            "[dialect] schema at '': type leaves no object, which the arguments of a call are");
  EXPECT_EQ(error("Qwen-Qwen2.5-7B-Instruct", R"({"not": {}})"),
            "[grammar] schema at '': not cannot be held to");
}

}  // namespace
}  // namespace juno::dialect
