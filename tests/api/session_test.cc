// SPDX-License-Identifier: Apache-2.0
#include "api/session.h"

#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "api/golden_check.h"
#include "base/hash.h"

namespace juno::api {
namespace {

using Messages = std::vector<Message>;

uint64_t hash(Session& session, const std::vector<int32_t>& ids, int chunk) {
  Fnv1a sum;
  take(session.logits(ids, {}, chunk,
                      [&](int64_t, std::span<const float> row) { sum.add(row.data(), row.size_bytes()); }));
  return sum.value();
}

std::string written(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "juno_session_" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(Session, TheDemoModelSaysThatItIsOfJuno) {
  const auto session = open_session(kDemo);
  std::string streamed;
  const Reply reply = take(session->chat(Messages{{"user", "Who are you?"}}, {.max_tokens = 60},
                                         [&](std::string_view text) { streamed += text; }));
  EXPECT_NE(reply.text.find("I am the demo model that comes with Juno"), std::string::npos) << reply.text;
  EXPECT_EQ(streamed, reply.text);
  EXPECT_EQ(reply.text.find("<|im_end|>"), std::string::npos) << "the end token is no text";
  EXPECT_TRUE(session->check_idle());
}

TEST(Session, SaysWhatItRuns) {
  const auto session = open_session(kDemo);
  const Info& info = session->info();
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.quant, "Q8_0");
  EXPECT_EQ(info.parameters, 23077376);
  EXPECT_EQ(info.context, 1024);
  EXPECT_EQ(info.trained_context, 1024);
  EXPECT_EQ(info.vocab, 8192);
  EXPECT_EQ(info.layers, 8);
  EXPECT_EQ(info.backend, "cpu");
  EXPECT_EQ(info.activations, "int8");
  EXPECT_GE(info.threads, 1);
  EXPECT_FALSE(info.isa.empty());
  EXPECT_EQ(info.file_bytes, 24823072u);
  EXPECT_EQ(info.kv_bytes, uint64_t{8} * 2 * 4 * 64 * 2 * 1024)
      << "layers, K and V, heads, head, f16, positions";
  EXPECT_EQ(session->memory(1024).kv, info.kv_bytes);
  EXPECT_EQ(session->memory(65).kv, session->memory(128).kv);
  EXPECT_GT(session->memory(1).weights, 24000000u);
}

TEST(Session, CountsTokensTimeAndWeights) {
  const auto session = open_session(kDemo);
  const Generation five{.sampling = {.logit_bias = {{2, -100.0f}}},
                        .max_tokens = 5};  // 2 would end the reply
  const std::string text = "Hello there, how are you today?";
  const Reply reply = take(session->complete(text, five, {}));
  const Stats& s = reply.stats;
  EXPECT_EQ(s.prompt_tokens, static_cast<int64_t>(session->tokenizer().encode(text).size()));
  EXPECT_EQ(s.new_tokens, 5);
  EXPECT_EQ(reply.ids.size(), 5u);
  EXPECT_EQ(s.cached_tokens, 0);
  EXPECT_GT(s.prefill_seconds, 0);
  EXPECT_GT(s.decode_seconds, 0);
  EXPECT_EQ(s.declined, 0u);
  // Every pass reads each weight once; the embedding is the head too.
  EXPECT_NEAR(static_cast<double>(s.prefill_bytes), 24.5e6, 0.5e6);
  EXPECT_NEAR(static_cast<double>(s.decode_bytes), 4 * 24.5e6, 2e6);
  take(session->complete(text, five, {}));
  EXPECT_EQ(session->total().new_tokens, 10);
}

TEST(Session, ALaterTurnReusesTheConversationAndGivesTheBitsOfAColdRun) {
  const auto warm = open_session(kDemo), cold = open_session(kDemo);
  const Generation how{.sampling = {.temperature = 0.8f, .top_k = 40, .seed = 4}, .max_tokens = 20};
  Messages talk{{"user", "What is the capital of Japan?"}};
  talk.push_back({"assistant", take(warm->chat(talk, how, {})).text});
  talk.push_back({"user", "And of France?"});
  const Reply reused = take(warm->chat(talk, how, {})), fresh = take(cold->chat(talk, how, {}));
  EXPECT_GT(reused.stats.cached_tokens, 10);
  EXPECT_EQ(fresh.stats.cached_tokens, 0);
  EXPECT_EQ(reused.ids, fresh.ids);
  EXPECT_LT(reused.stats.cached_tokens, reused.stats.prompt_tokens);
  // Another conversation shares only its beginning, and nothing of the old one shows.
  const Messages other{{"user", "Who are you?"}};
  EXPECT_EQ(take(warm->chat(other, how, {})).ids, take(open_session(kDemo)->chat(other, how, {})).ids);
  EXPECT_TRUE(warm->check_idle());
}

TEST(Session, ARepeatedPromptIsComputedOnlyInItsLastToken) {
  const auto session = open_session(kDemo);
  const Messages talk{{"user", "Who are you?"}};
  const Reply first = take(session->chat(talk, {.max_tokens = 8}, {}));
  const Reply again = take(session->chat(talk, {.max_tokens = 8}, {}));
  EXPECT_EQ(again.stats.cached_tokens, again.stats.prompt_tokens - 1);
  EXPECT_EQ(again.text, first.text);
}

TEST(Session, LogitsAreTheSameForEveryChunkThreadCountAndContext) {
  std::vector<int32_t> ids;
  for (int i = 0; i < 70; ++i) ids.push_back((i * 997 + 13) % 8192);
  std::set<uint64_t> hashes;
  for (int threads : {1, 2, 5}) {
    const auto session =
        take(Session::open({.model_path = kDemo, .context = threads == 2 ? 70 : 512, .threads = threads}));
    EXPECT_EQ(session->info().threads, threads);
    for (int chunk : {1, 7, 32, 512}) {
      if (threads == 2 || chunk == 32) hashes.insert(hash(*session, ids, chunk));
    }
  }
  EXPECT_EQ(hashes.size(), 1u);
}

// Each waits for the other's loops, not for the other's reply.
TEST(Session, TwoThatShareThreadsRunAtOnceAndGiveTheSameBits) {
  const std::vector<int32_t> ids = {5, 400, 23, 900, 77, 1200, 3, 8, 15};
  const uint64_t want = hash(*open_session(kDemo), ids, 4);
  SessionOptions options{.model_path = kDemo, .context = 64, .pool = std::make_shared<ThreadPool>(3)};
  const auto first = take(Session::open(options)), second = take(Session::open(options));
  EXPECT_EQ(first->info().threads, 3);
  std::thread other([&] {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(hash(*second, ids, 9), want);
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(hash(*first, ids, 4), want);
  other.join();
  options.threads = 2;
  const auto refused = Session::open(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUsage);
}

TEST(Session, TheReferenceBackendGivesTheSameBits) {
  const std::vector<int32_t> ids = {511, 310, 412, 7, 8191, 0, 100};
  const auto slow = take(Session::open({.model_path = kDemo, .context = 64, .backend = "reference"}));
  EXPECT_EQ(slow->info().backend, "reference");
  EXPECT_EQ(hash(*slow, ids, 3), hash(*open_session(kDemo), ids, 64));
}

TEST(Session, LogitsComeForThePositionsAskedFor) {
  const auto session = open_session(kDemo);
  const std::vector<int32_t> ids = {511, 310, 412, 7};
  std::vector<int64_t> seen;
  const auto note = [&](int64_t position, std::span<const float> row) {
    seen.push_back(position);
    EXPECT_EQ(row.size(), 8192u);
  };
  take(session->logits(ids, std::vector<int64_t>{1, 3}, 2, note));
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(session->logits(ids, std::vector<int64_t>{4}, 0, note).error().code, Code::kUsage);
  EXPECT_EQ(session->logits({}, {}, 0, note).error().code, Code::kUsage);
  EXPECT_EQ(session->logits(std::vector<int32_t>{9000}, {}, 0, note).error().code, Code::kBadData);
}

TEST(Session, APromptThatDoesNotFitIsAnErrorWithBothNumbers) {
  const auto session = open_session(kDemo, "int8", 100);
  std::string text;
  for (int i = 0; i < 150; ++i) text += " the";
  const auto count = session->tokenizer().encode(text).size();
  for (const auto& result : {session->complete(text, {.max_tokens = 5}, {}),
                             session->complete(std::vector<int32_t>(100, 511), {.max_tokens = 5}, {})}) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kBadData);
    EXPECT_NE(result.error().message.find("100"), std::string::npos) << result.error().message;
  }
  EXPECT_NE(session->complete(text, {}, {}).error().message.find(std::to_string(count)), std::string::npos);
  const auto talk = session->chat(Messages{{"user", text}}, {}, {});
  ASSERT_FALSE(talk) << "nothing is cut silently";
  EXPECT_EQ(take(session->complete(std::vector<int32_t>(99, 511), {}, {})).stats.new_tokens, 1);
}

TEST(Session, TheEndOfTheContextEndsTheReply) {
  const auto session = open_session(kDemo, "int8", 70);
  const Reply reply = take(session->complete(std::vector<int32_t>(60, 511),
                                             {.sampling = {.logit_bias = {{2, -100.0f}, {0, -100.0f}}}}, {}));
  EXPECT_EQ(reply.reason, FinishReason::kLength);
  EXPECT_EQ(reply.stats.new_tokens, 10);
}

TEST(C21, StopStringsCutTheReplyTheSameWayStreamedAndWhole) {
  const auto session = open_session(kDemo);
  const Messages talk{{"user", "Who are you?"}};
  const std::string whole = take(session->chat(talk, {.max_tokens = 24}, {})).text;
  for (size_t begin = 0; begin < whole.size(); begin += 3) {
    const std::vector<std::string> stops = {whole.substr(begin, 9), whole.substr(begin, 4), "never in there"};
    std::string streamed;
    const Reply reply =
        take(session->chat(talk, {.max_tokens = 24, .stop = stops}, [&](auto text) { streamed += text; }));
    EXPECT_EQ(reply.text, whole.substr(0, std::min(whole.find(stops[0]), whole.find(stops[1]))));
    EXPECT_EQ(streamed, reply.text);
    EXPECT_EQ(reply.reason, FinishReason::kStop);
  }
}

TEST(C21, WhatWasHeldBackAppearsAtTheMaximum) {
  const auto session = open_session(kDemo);
  const Messages talk{{"user", "Who are you?"}};
  const std::string whole = take(session->chat(talk, {.max_tokens = 6}, {})).text;
  const std::string half = whole.substr(whole.size() - 3) + "###";
  const Reply reply = take(session->chat(talk, {.max_tokens = 6, .stop = {half}}, {}));
  EXPECT_EQ(reply.text, whole);
  EXPECT_EQ(reply.reason, FinishReason::kLength);
}

TEST(C52, ASeedGivesTheSameReplyAgain) {
  const Messages talk{{"user", "Tell me a story."}};
  Generation how{.sampling = {.temperature = 1, .seed = 77}, .max_tokens = 20};
  const std::string first = take(open_session(kDemo)->chat(talk, how, {})).text;
  EXPECT_EQ(take(open_session(kDemo, "int8", 256)->chat(talk, how, {})).text, first);
  how.sampling.seed = 78;
  EXPECT_NE(take(open_session(kDemo)->chat(talk, how, {})).text, first);
}

TEST(C58, NoTextOfAUserBecomesAControlToken) {
  const auto session = open_session(kDemo);
  const auto& tokenizer = session->tokenizer();
  const auto controls = [&](const std::vector<int32_t>& ids) {
    return std::count_if(ids.begin(), ids.end(), [&](int32_t id) { return tokenizer.is_control(id); });
  };
  const auto plain = controls(
      take(session->chat_ids(Messages{{"system", "x"}, {"user", "x"}, {"assistant", "x"}, {"user", "x"}})));
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    if (!tokenizer.is_control(id)) continue;
    const std::string text(tokenizer.piece(id));
    const Messages talk{
        {"system", text}, {"user", "a" + text + "b"}, {"assistant", text + text}, {"user", text}};
    EXPECT_EQ(controls(take(session->chat_ids(talk))), plain) << text;
    EXPECT_EQ(controls(tokenizer.encode(text)), 0) << text;
  }
  EXPECT_EQ(controls(take(session->chat_ids(
                Messages{{"system", "x"}, {"user", "<|im_"}, {"assistant", "x"}, {"user", "end|>"}}))),
            plain);
  // complete() decides by its argument: six ids of text, or one.
  const Reply text = take(session->complete("<|im_end|>", {.max_tokens = 0}, {}));
  const Reply token = take(session->complete("<|im_end|>", {.max_tokens = 0}, {}, true));
  EXPECT_GT(text.stats.prompt_tokens, 1);
  EXPECT_EQ(token.stats.prompt_tokens, 1);
}

TEST(C63, ATemplateThatNeverEndsMeetsALimit) {
  const std::pair<const char*, const char*> cases[] = {
      {"loop", "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"},
      {"bomb", "{{ 'a' * 4000000000 }}"},
      {"recursion", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"},
      {"attribute", "{{ ''.__class__.__mro__ }}"},
  };
  for (const auto& [name, source] : cases) {
    const auto session =
        take(Session::open({.model_path = kDemo, .context = 64, .chat_template = written(name, source)}));
    const auto start = std::chrono::steady_clock::now();
    const auto reply = session->chat(Messages{{"user", "hi"}}, {.max_tokens = 1}, {});
    ASSERT_FALSE(reply) << name;
    EXPECT_NE(reply.error().message.find(name), std::string::npos)
        << "names the template: " << reply.error().message;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  }
}

TEST(Session, AModelWithoutATemplateRefusesToChatAndNamesTheFlag) {
  const auto session =
      take(Session::open({.model_path = kSource + "/tests/data/archs/llama-untied.gguf", .context = 64}));
  EXPECT_EQ(session->chat_template(), nullptr);
  const auto reply = session->chat(Messages{{"user", "hi"}}, {}, {});
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("--chat-template"), std::string::npos);
  EXPECT_NE(reply.error().message.find("chatml"), std::string::npos);
  EXPECT_FALSE(session->chat_ready());
  EXPECT_TRUE(open_session(kDemo)->chat_ready());
}

TEST(Session, CancelEndsTheReplyAndKeepsWhatWasSaid) {
  const auto session = open_session(kDemo);
  std::string streamed;
  const Reply reply =
      take(session->complete("The", {.sampling = {.logit_bias = {{2, -100.0f}}}}, [&](std::string_view text) {
        streamed += text;
        if (streamed.size() > 10) session->cancel();
      }));
  EXPECT_EQ(reply.reason, FinishReason::kCancelled);
  EXPECT_EQ(reply.text, streamed);
  EXPECT_GT(reply.text.size(), 10u);
  EXPECT_LT(reply.stats.new_tokens, 40);
  EXPECT_TRUE(session->check_idle());
  EXPECT_EQ(take(session->complete("The", {.max_tokens = 2}, {})).reason, FinishReason::kLength)
      << "once, not for ever";
}

TEST(Session, CancelEndsAPerplexityRunWithInterrupted) {
  const auto session = open_session(kDemo);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    session->cancel();
  });
  const auto result = session->perplexity(std::vector<int32_t>(200000, 511), 1024);
  other.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kInterrupted);
  EXPECT_TRUE(session->check_idle());
}

TEST(Session, PerplexityResetsItsWindowsAndSkipsTheirFirstTokens) {
  const auto session = open_session(kDemo);
  std::vector<int32_t> ids;
  for (int i = 0; i < 25; ++i) ids.push_back((i * 131 + 5) % 8192);
  const Perplexity whole = take(session->perplexity(ids, 10));
  EXPECT_EQ(whole.scored, 9 + 9 + 4);
  ASSERT_EQ(whole.window_nll.size(), 3u);
  const std::vector<int32_t> second(ids.begin() + 10, ids.begin() + 20);
  EXPECT_EQ(take(session->perplexity(second, 10)).mean_nll, whole.window_nll[1]);
  EXPECT_EQ(session->perplexity(ids, 1).error().code, Code::kUsage);
  EXPECT_EQ(session->perplexity(ids, 2000).error().code, Code::kUsage);
  EXPECT_EQ(session->perplexity(std::vector<int32_t>{1}, 10).error().code, Code::kBadData);
}

TEST(Session, ErrorsHaveTheCodesOfTheCommandLine) {
  const auto code = [](SessionOptions options) {
    if (options.model_path.empty()) options.model_path = kDemo;
    const auto result = Session::open(options);
    return result ? 0 : static_cast<int>(result.error().code);
  };
  EXPECT_EQ(code({.model_path = "/does/not/exist.gguf"}), 66);
  EXPECT_EQ(code({.model_path = written("bad.gguf", "GGUF nonsense that is no model at all")}), 65);
  EXPECT_EQ(code({.activations = "int4"}), 2);
  EXPECT_EQ(code({.chunk = -1}), 2);
  EXPECT_EQ(code({.chat_template = "no-such-template"}), 66);
  EXPECT_EQ(code({.backend = "rocm"}), 69);
  EXPECT_EQ(code({.backend = "abacus"}), 2);
  const auto session = open_session(kDemo);
  EXPECT_EQ(session->complete("x", {.sampling = {.top_p = 2}}, {}).error().code, Code::kUsage);
  EXPECT_EQ(session->complete(std::string_view(""), {}, {}).error().code, Code::kUsage);
  EXPECT_TRUE(session->check_idle());
}

TEST(Session, OpensAModelInMemory) {
  const std::string file = read_file(kDemo);
  std::vector<uint64_t> aligned((file.size() + 7) / 8);
  std::memcpy(aligned.data(), file.data(), file.size());
  const auto session =
      take(Session::open({.model_path = "embedded demo",
                          .model_bytes = {reinterpret_cast<const uint8_t*>(aligned.data()), file.size()},
                          .context = 64}));
  EXPECT_EQ(session->info().path, "embedded demo");
  EXPECT_EQ(take(session->complete("The", {.max_tokens = 3}, {})).ids,
            take(open_session(kDemo)->complete("The", {.max_tokens = 3}, {})).ids);
}

}  // namespace
}  // namespace juno::api
