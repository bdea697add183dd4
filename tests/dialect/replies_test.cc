// SPDX-License-Identifier: Apache-2.0
// Text in, pieces out, for each dialect: tests/dialect/replies.json.
#include <set>

#include "dialect/support.h"

namespace juno::dialect {
namespace {

const char* const kTools = R"({
  "weather": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
              "required": ["city"]},
  "clock": {"type": "object", "properties": {}},
  "run": {"type": "object", "properties": {"code": {"type": "string", "description": "what to run"}}},
  "all": {"type": "object", "properties": {
    "text": {"type": "string"}, "number": {"type": "number"}, "flag": {"type": "boolean"},
    "list": {"type": "array"}, "object": {"type": "object"}, "date": {"type": "string", "format": "date"}}}})";

class Replies : public testing::Test {
 protected:
  ToolUse use(const Json& example) const {
    ToolUse use = use_of(tools_);
    const std::string choice = example.value("choice", "auto");
    if (choice == "none") use.choice = Choice::kNone;
    if (choice == "named") use.choice = Choice::kNamed;
    use.name = choice == "named" ? "weather" : "";
    use.parallel = example.value("parallel", true);
    use.held = example.value("held", true);
    return use;
  }

  std::unique_ptr<ReplyParser> parser(const Json& example) const {
    const ToolUse how = use(example);
    return dialect_of(example["model"])->parser(example.value("prompt", "<|assistant|>\n"), &how);
  }

  const Json tools_ = Json::parse(kTools);
  const Json examples_ = Json::parse(read_file("dialect/replies.json"));
};

TEST_F(Replies, GiveTheirPieces) {
  for (const Json& example : examples_) {
    SCOPED_TRACE(example.dump());
    const auto reader = parser(example);
    std::vector<Piece> pieces = reader->push(example["reply"].get<std::string>());
    append(pieces, reader->finish());
    EXPECT_EQ(joined(pieces), example["gives"]);
  }
}

TEST_F(Replies, GiveTheSamePiecesWhereverTheyAreCut) {
  for (const Json& example : examples_) {
    SCOPED_TRACE(example.dump());
    const std::string reply = example["reply"];
    for (size_t cut = 0; cut <= reply.size() + 1; ++cut) {
      const auto reader = parser(example);
      std::vector<Piece> pieces;
      if (cut <= reply.size()) {
        append(pieces, reader->push(reply.substr(0, cut)));
        append(pieces, reader->push(reply.substr(cut)));
      } else {  // byte by byte
        for (const char c : reply) append(pieces, reader->push(std::string(1, c)));
      }
      append(pieces, reader->finish());
      ASSERT_EQ(joined(pieces), example["gives"]) << "cut at " << cut;
    }
  }
}

TEST_F(Replies, AreThereForEachTemplate) {
  std::set<std::string> models, tested;
  const Json templates = Json::parse(read_file("data/templates/expected.json"));
  for (const auto& [name, rows] : templates.items()) models.insert(name.substr(0, name.size() - 6));
  for (const Json& example : examples_) tested.insert(example["model"].get<std::string>());
  EXPECT_EQ(tested, models);
}

TEST_F(Replies, WithToolsHaveOneWithSeveralCallsAndOneThatIsNoCall) {
  std::set<std::string> models, several, none;
  for (const Json& example : examples_) {
    const std::string model = example["model"];
    const auto dialect = dialect_of(model);
    if (!dialect->has_tools()) continue;
    const std::string name(dialect->name());
    models.insert(name);
    if (example["gives"].value("calls", Json::array()).size() > 1) several.insert(name);
    if (!example["gives"].contains("calls") && example.value("why", "") != "") none.insert(name);
  }
  several.insert("llama3");
  EXPECT_EQ(several, models);
  none.insert("granite-list");  // reads calls as hermes does
  EXPECT_EQ(none, models);
}

TEST(Dialects, AreFoundFromTheTemplate) {
  const std::pair<const char*, const char*> kFound[] = {
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "command-r, tools, reasoning"},
      {"GLM-4.6", "glm, tools, reasoning"},
      {"HuggingFaceTB-SmolLM3-3B", "plain, reasoning"},
      {"Kimi-K2-Instruct", "kimi, tools"},
      {"LFM2-8B-A1B", "lfm2, tools"},
      {"Mistral-Small-3.2-24B-Instruct-2506", "mistral, tools"},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes, tools"},
      {"Qwen-QwQ-32B", "hermes, tools, reasoning"},
      {"Qwen-Qwen2.5-7B-Instruct", "hermes, tools"},
      {"Qwen-Qwen3-0.6B", "hermes, tools, reasoning"},
      {"Qwen3-Coder", "qwen-xml, tools"},
      {"Qwen3.5-4B", "qwen-xml, tools, reasoning"},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek, tools, reasoning"},
      {"google-gemma-2-2b-it", "plain"},
      {"google-gemma-4-31B-it", "gemma4, tools, reasoning"},
      {"ibm-granite-granite-3.3-2B-Instruct", "granite-list, tools, reasoning"},
      {"ibm-granite-granite-4.0", "hermes, tools"},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama3, tools"},
      {"meta-llama-Llama-3.2-3B-Instruct", "llama3, tools"},
      {"microsoft-Phi-3.5-mini-instruct", "plain"},
      {"mistralai-Mistral-Nemo-Instruct-2407", "mistral-list, tools"},
      {"openai-gpt-oss-120b", "harmony, tools, reasoning"},
  };
  for (const auto& [model, expected] : kFound) {
    const auto found = dialect_of(model);
    std::string is(found->name());
    if (found->has_tools()) is += ", tools";
    if (found->has_reasoning()) is += ", reasoning";
    EXPECT_EQ(is, expected) << model;
  }
  EXPECT_EQ(find_dialect("")->name(), "plain");
}

TEST(Dialects, NameTheControlTokensOfReplies) {
  const auto marks = [](const char* model) {
    std::string all;
    for (const std::string& mark : dialect_of(model)->markers()) all += mark + " ";
    return all;
  };
  EXPECT_EQ(marks("Qwen-Qwen3-0.6B"), "<tool_call> </tool_call> <think> </think> ");
  EXPECT_EQ(marks("Mistral-Small-3.2-24B-Instruct-2506"), "[CALL_ID] [ARGS] [TOOL_CALLS] ");
  EXPECT_EQ(marks("LFM2-8B-A1B"), "<|tool_call_start|> <|tool_call_end|> ");
  EXPECT_EQ(marks("google-gemma-4-31B-it"), "<|\"|> <|tool_call> <tool_call|> <|channel> <channel|> ");
  EXPECT_EQ(marks("google-gemma-2-2b-it"), "");
}

}  // namespace
}  // namespace juno::dialect
