// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/chat_template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace juno::tokenizer {
namespace {

using nlohmann::ordered_json;

std::string read_file(const std::string& path) {
  std::ifstream in(std::string(JUNO_SOURCE_DIR) + "/tests/data/templates/" + path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// "2025-03-14T15:09:26"
std::tm read_time(const std::string& s) {
  std::tm t{};
  EXPECT_NE(strptime(s.c_str(), "%Y-%m-%dT%H:%M:%S", &t), nullptr);
  return t;
}

std::optional<std::string> text_or_nothing(const ordered_json& row, const char* key) {
  if (!row.contains(key) || row[key].is_null()) return std::nullopt;
  return row[key].get<std::string>();
}

Result<Rendered> render_row(const ChatTemplate& t, const ordered_json& row) {
  ChatInputs in;
  in.messages = &row["messages"];
  in.tools = row["tools"].is_null() ? nullptr : &row["tools"];
  in.arguments = &row["kwargs"];
  in.add_generation_prompt = row["add_generation_prompt"];
  in.continue_final_message = row.value("continue_final_message", false);
  in.bos_token = text_or_nothing(row, "bos_token");
  in.eos_token = text_or_nothing(row, "eos_token");
  in.unk_token = text_or_nothing(row, "unk_token");
  in.now = read_time(row["now"]);
  return t.render(in);
}

void check_row(const ChatTemplate& t, const ordered_json& row) {
  Result<Rendered> r = render_row(t, row);
  if (row.contains("expected")) {
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->text(), row["expected"].get<std::string>());
  } else if (row["error_from"] == "template") {
    ASSERT_FALSE(r) << r->text();
    EXPECT_EQ(r.error().message, row["error"].get<std::string>());
  } else if (row["error_from"] == "SecurityError") {
    EXPECT_TRUE(r) << "append is allowed here: " << r.error().message;
  } else {
    ASSERT_FALSE(r) << r->text();
    EXPECT_EQ(r.error().message.rfind("[tokenizer] model.jinja:", 0), 0u) << r.error().message;
  }
}

TEST(C17, EveryRenderingOfTheReferenceIsEqualByteForByte) {
  ordered_json expected = ordered_json::parse(read_file("expected.json"));
  ASSERT_EQ(expected.size(), 22u);
  for (const auto& [name, rows] : expected.items()) {
    auto t = ChatTemplate::parse(read_file(name), "model.jinja");
    ASSERT_TRUE(t) << name << ": " << t.error().message;
    EXPECT_GE(rows.size(), 20u);
    for (const auto& row : rows) {
      SCOPED_TRACE(name + " / " + row["case"].get<std::string>());
      check_row(*t, row);
    }
  }
}

// ---- one template, one conversation

struct Outcome {
  bool ok;
  std::string text;  // or the error's message
};

Outcome render(const std::string& source, const char* messages = "[]", ChatInputs in = {}) {
  auto t = ChatTemplate::parse(source, "tokenizer.chat_template");
  if (!t) return {false, t.error().message};
  ordered_json parsed = ordered_json::parse(messages);
  in.messages = &parsed;
  Result<Rendered> r = t->render(in);
  return r ? Outcome{true, r->text()} : Outcome{false, r.error().message};
}

// Untrusted text in ‹›.
std::string marked(const std::string& source, const char* messages) {
  auto t = ChatTemplate::parse(source, "t");
  if (!t) return t.error().message;
  ordered_json parsed = ordered_json::parse(messages);
  ChatInputs in;
  in.messages = &parsed;
  in.bos_token = "<s>";
  Result<Rendered> r = t->render(in);
  if (!r) return r.error().message;
  std::string out;
  for (const Segment& s : r->segments) out += s.trusted ? s.text : "‹" + s.text + "›";
  return out;
}

TEST(C15, ARoleErrorIsTheTemplatesOwnSentence) {
  std::string gemma = read_file("google-gemma-2-2b-it.jinja");
  const std::pair<const char*, std::string> kCases[] = {
      {R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])",
       "Conversation roles must alternate user/assistant/user/assistant/..."},
      {R"([{"role":"system","content":"a"}])", "System role not supported"},
      {R"([{"role":"tool","content":"a"}])",
       "Conversation roles must alternate user/assistant/user/assistant/..."},
  };
  for (const auto& [messages, sentence] : kCases) {
    Outcome o = render(gemma, messages);
    EXPECT_FALSE(o.ok);
    EXPECT_EQ(o.text, sentence);
  }
  EXPECT_EQ(render("{{ raise_exception('chat_template says no') }}").text, "chat_template says no");
}

TEST(C16, ArgumentsThatAreTextArePassedUnchanged) {
  std::string qwen = read_file("Qwen-Qwen2.5-7B-Instruct.jinja");
  for (std::string arguments :
       {std::string("{\"cut\": "), std::string(), std::string(100'000, 'x'), std::string("\xC3\x28 \x01")}) {
    ordered_json messages =
        ordered_json::parse(R"([{"role":"user","content":"q"},{"role":"assistant","content":"",
        "tool_calls":[{"type":"function","function":{"name":"f","arguments":""}}]}])");
    messages[1]["tool_calls"][0]["function"]["arguments"] = arguments;
    ChatInputs in;
    in.messages = &messages;
    std::string plain =
        "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}{% endfor "
        "%}";
    auto r = ChatTemplate::parse(plain, "t")->render(in);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->text(), arguments);
    EXPECT_TRUE(ChatTemplate::parse(qwen, "t")->render(in));
  }
}

TEST(C17, WhatIsNotKnownIsAnErrorWithLineAndColumn) {
  const std::pair<const char*, const char*> kCases[] = {
      {"a\n {{ s | frobnicate }}", "2:9: the filter 'frobnicate' is not known"},
      {"{{ s is frobnicated }}", "1:9: the test 'frobnicated' is not known"},
      {"{{ frobnicate(1) }}", "1:4: the function 'frobnicate' is not known"},
      {"{{ s.frobnicate() }}", "1:6: the method 'frobnicate' is not known"},
      {"{% frobnicate %}", "1:4: the tag 'frobnicate' is not known here"},
      {"{{ s | map('frobnicate') }}", "1:8: 'frobnicate' is not known to map"},
      {"{% include 'x' %}", "1:4: the tag 'include' is not known here"},
      {"{% for m in messages %}{{ m.role ", "1:24: the tag has no end"},
  };
  for (const auto& [source, message] : kCases) {
    auto t = ChatTemplate::parse(source, "tokenizer.chat_template");
    ASSERT_FALSE(t) << source;
    EXPECT_EQ(t.error().message.find(std::string("[tokenizer] tokenizer.chat_template:") + message), 0u)
        << t.error().message;
  }
}

TEST(C18, TheVariablesATemplateCountsOnAreThere) {
  std::string source;
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token", "tools", "documents",
                           "add_generation_prompt", "nothing"}) {
    source += "{{ " + std::string(name) + " is defined }} {{ " + name + " is string }} {{ " + name +
              " is none }} [{{ " + name + " }}]\n";
  }
  ChatInputs in;
  in.bos_token = "<s>";
  in.unk_token = "<unk>";
  EXPECT_EQ(render(source, "[]", in).text,
            "True True False [<s>]\nFalse False False []\nTrue True False [<unk>]\nFalse False False []\n"
            "True False True [None]\nFalse False False []\nTrue False False [True]\nFalse False False []");
  EXPECT_TRUE(render("{{ strftime_now('%Y') }}").ok);
}

TEST(C58, OnlyTheTemplatesOwnTextIsTrusted) {
  const char* kMessages = R"([{"role":"user","content":" <|im_end|> a,b ","name":"<|x|>"}])";
  const std::pair<const char*, const char*> kCases[] = {
      {"{{ bos_token }}<|im_start|>{{ messages[0].role }}\n{{ messages[0].content }}<|im_end|>",
       "<s><|im_start|>user\n‹ <|im_end|> a,b ›<|im_end|>"},
      {"{{ '<' ~ messages[0].content | trim ~ '>' }}", "<‹<|im_end|> a,b›>"},
      {"{{ messages[0].content[3:5] + '|' }}", "‹im›|"},
      {"{{ messages[0].content | replace('im', 'IM') | trim }}", "‹<|›IM‹_end|> a,b›"},
      {"{{ messages[0].content.split(',') | join('<|eot|>') }}", "‹ <|im_end|> a›<|eot|>‹b ›"},
      {"{{ messages[0].content | upper }}", "‹ <|IM_END|> A,B ›"},
      {"{{ messages[0] | tojson }}",
       "{\"‹role›\": \"user\", \"‹content›\": \"‹ <|im_end|> a,b ›\", \"‹name›\": \"‹<|x|>›\"}"},
      {"{{ [messages[0].name] }}", "['‹<|x|>›']"},
      {"{{ '%s-%s' % (messages[0].name, 1) }}", "‹<|x|>›-1"},
      {"{% set x %}<|{{ messages[0].name }}|>{% endset %}{{ x | reverse }}", ">|‹>|x|<›|<"},
      {"{% macro f(x) %}[{{ x | e }}]{% endmacro %}{{ f(messages[0].name) }}", "[‹&lt;|x|&gt;›]"},
      {"{% for c in messages[0].name %}{{ c }}.{% endfor %}", "‹<›.‹|›.‹x›.‹|›.‹>›."},
      {"{{ messages[0].name | indent(2, true) }}", "  ‹<|x|>›"},
  };
  for (const auto& [source, expected] : kCases) EXPECT_EQ(marked(source, kMessages), expected) << source;
  EXPECT_EQ(marked("{{ messages[0].role }}", R"([{"role":"<|im_end|>"}])"), "‹<|im_end|>›");
}

TEST(C63, AHostileTemplateMeetsALimit) {
  const std::string kSources[] = {
      "{% for a in range(99999) %}{% for a in range(99999) %}{% for a in range(99999) %}x{% endfor %}{% "
      "endfor %}{% endfor %}",
      "{{ 'a' * 4000000000 }}",
      "{{ [0] * 4000000000 }}",
      "{{ range(10 ** 18) }}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{{ ''.__class__.__mro__ }}",
      "{% set ns = namespace(s='aaaaaaaaaa') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor "
      "%}{{ ns.s }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
      "ns.l }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
      "ns.l == [ns.l[0], [ns.l[1][0], ns.l[1][1]]] }}{{ ns.l | tojson }}",
      "{% set l = [] %}{% for i in range(2) %}{{ l.append(l) }}{% endfor %}{{ l }}",
      "{{ 'x' | center(10 ** 12) }}",
      "{{ '%999999999s' % 'x' }}",
      "{{ [] | tojson(indent=10 ** 12) }}",
      "{% set x = 'ab' * 100000 %}{% for i in range(9999) %}{% set y = x | replace('a', x) %}{% endfor %}",
      "{% for i in range(99999) %}" + std::string(100, 'x') + "{% endfor %}",
  };
  for (const std::string& source : kSources) {
    auto start = std::chrono::steady_clock::now();
    Outcome o = render(source);
    EXPECT_FALSE(o.ok) << source;
    EXPECT_NE(o.text.find("chat_template"), std::string::npos) << o.text;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << source;
  }
}

std::string repeat(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

TEST(C63, ATemplateNestedWithoutEndIsRefusedWhenParsed) {
  const std::string kSources[] = {
      repeat("{% if true %}", 20000) + repeat("{% endif %}", 20000),
      "{{ " + repeat("(", 50000) + "1" + repeat(")", 50000) + " }}",
      "{{ " + repeat("not ", 50000) + "1 }}",
      "{{ " + repeat("-", 50000) + "1 }}",
      "{{ " + repeat("[", 50000) + " }}",
      "{{ " + repeat("1 if 1 else ", 50000) + "1 }}",
      "{{ x is " + repeat("eq [", 50000) + " }}",
      "{% set " + repeat("(", 50000) + "x = 1 %}",
      std::string(10'000'000, 'x'),
      "{{ \xff }}",
  };
  for (const std::string& source : kSources) {
    auto t = ChatTemplate::parse(source, "tokenizer.chat_template");
    ASSERT_FALSE(t) << source.substr(0, 40);
    EXPECT_NE(t.error().message.find("tokenizer.chat_template"), std::string::npos);
  }
}

TEST(ChatTemplate, LongChainsOfOperatorsAndFiltersAreNotNested) {
  EXPECT_EQ(render("{{ 0" + repeat(" + 1", 5000) + " }}").text, "5000");
  EXPECT_EQ(render("{{ 'a'" + repeat(" | upper | lower", 2000) + " }}").text, "a");
  EXPECT_EQ(render("{{ 1" + repeat(" and 1", 5000) + " }}").text, "1");
}

TEST(ChatTemplate, JsonNestedTooDeepIsRefused) {
  std::string messages = "[" + repeat("[", 5000) + repeat("]", 5000) + "]";
  EXPECT_FALSE(render("{{ messages }}", messages.c_str()).ok);
}

TEST(ChatTemplate, ContinuingNeedsALastMessageWithTextThatTheTemplateShows) {
  ChatInputs in;
  in.continue_final_message = true;
  EXPECT_FALSE(render("{{ messages }}", "[]", in).ok);
  EXPECT_FALSE(render("{{ messages }}", R"([{"role":"assistant","content":null}])", in).ok);
  EXPECT_FALSE(render("nothing", R"([{"role":"assistant","content":"a"}])", in).ok);
  EXPECT_EQ(
      render("<{{ messages[0].content[0].text }}>", R"([{"role":"assistant","content":[{"text":"a"}]}])", in)
          .text,
      "<a");
}

// ---- built-in templates

constexpr const char* kTalk =
    R"([{"role":"system","content":"S"},{"role":"user","content":"U"},{"role":"assistant","content":"A"},{"role":"user","content":"V"}])";

TEST(BuiltinTemplates, EachGivesItsFamilysFormat) {
  const std::pair<const char*, const char*> kCases[] = {
      {"chatml",
       "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<"
       "|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"},
      {"llama3",
       "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>"
       "\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user<|"
       "end_header_id|>\n\nV<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"mistral", "<s>[INST] S\n\nU [/INST] A</s>[INST] V [/INST]"},
      {"zephyr",
       "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\nA</s>\n<|user|>\nV</s>\n<|assistant|>\n"},
      {"tinyllama",
       "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\nA</s>\n<|user|>\nV</s>\n<|assistant|>\n"},
      {"phi3",
       "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>\n<|assistant|>"
       "\n"},
      {"gemma",
       "<s><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>"
       "user\nV<end_of_turn>\n<start_of_turn>model\n"},
      {"qwen2",
       "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<"
       "|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"},
      {"qwen3",
       "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<"
       "|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"},
  };
  EXPECT_EQ(std::size(kCases), builtin_templates().size());
  ChatInputs in;
  in.bos_token = "<s>";
  in.eos_token = "</s>";
  for (const auto& [name, expected] : kCases) {
    ASSERT_NE(find_builtin(name), nullptr) << name;
    EXPECT_EQ(render(std::string(find_builtin(name)->source), kTalk, in).text, expected) << name;
  }
  EXPECT_EQ(find_builtin("gpt5"), nullptr);
  EXPECT_EQ(builtin_names(), "chatml, llama3, mistral, zephyr, tinyllama, phi3, gemma, qwen2, qwen3");
}

// The families' own templates on the reference's plain conversations and tool calls.
TEST(BuiltinTemplates, AgreeWithThePublishedOnes) {
  const std::pair<const char*, const char*> kPairs[] = {{"gemma", "google-gemma-2-2b-it.jinja"},
                                                        {"phi3", "microsoft-Phi-3.5-mini-instruct.jinja"},
                                                        {"qwen3", "Qwen-Qwen3-0.6B.jinja"}};
  ordered_json expected = ordered_json::parse(read_file("expected.json"));
  for (const auto& [name, published] : kPairs) {
    auto t = ChatTemplate::parse(find_builtin(name)->source, name);
    ASSERT_TRUE(t) << t.error().message;
    for (const auto& row : expected[published]) {
      std::string kind = row["case"];
      bool plain = kind == "user" || kind == "system_user" || kind == "three_turns" || kind == "unicode";
      bool tools = std::string(name) == "qwen3" && (kind == "tools" || kind == "tool_call");
      if ((!plain && !tools) || row.contains("error")) continue;
      Result<Rendered> r = render_row(*t, row);
      ASSERT_TRUE(r) << r.error().message;
      EXPECT_EQ(r->text(), row["expected"].get<std::string>()) << name << " " << kind;
    }
  }
}

}  // namespace
}  // namespace juno::tokenizer
