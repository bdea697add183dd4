// SPDX-License-Identifier: Apache-2.0
#include "api/service.h"

#include <thread>

#include "api/grammar.h"
#include "api/service_check.h"

namespace juno::api {
namespace {

using namespace std::chrono_literals;

Work endless(const Service& service, int64_t most = -1) {
  return {.prompt = asked(service, "Tell me a long story."), .max_tokens = most, .ignore_end = true};
}

TEST(Service, AnswersAsASessionDoes) {
  const auto service = open_service();
  const auto session = open_session(kDemo);
  const Reply expected = take(session->chat(std::vector<Message>{{"user", "Who are you?"}}, {}, {}));
  const auto heard = run(*service, {.prompt = asked(*service, "Who are you?")});
  const HeardChoice reply = heard->choice();
  EXPECT_EQ(reply.text, expected.text);
  EXPECT_EQ(reply.end->reason, FinishReason::kStop);
  EXPECT_EQ(reply.end->tokens, expected.stats.new_tokens);
  EXPECT_EQ(static_cast<int64_t>(reply.ids.size()) + 1, reply.end->tokens) << "the end token is no text";
  const Outcome outcome = heard->wait();
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.prompt_tokens, expected.stats.prompt_tokens);
  EXPECT_EQ(outcome.new_tokens, expected.stats.new_tokens);
  EXPECT_GT(outcome.prefill_seconds + outcome.decode_seconds, 0);
  expect_idle(*service);
}

TEST(Service, SaysBeforeAnythingRunsWhatItRefuses) {
  const auto service = open_service();
  const auto refused = [&](Work work, Code code, const std::string& part) {
    const auto ticket = service->submit(std::move(work), std::make_shared<Heard>());
    ASSERT_FALSE(ticket) << part;
    EXPECT_EQ(ticket.error().code, code) << part;
    EXPECT_NE(ticket.error().message.find(part), std::string::npos) << ticket.error().message;
  };
  refused({}, Code::kUsage, "prompt is empty");
  refused({.prompt = std::vector<int32_t>(1025, 5)}, Code::kBadData,
          "1025 tokens and the context holds 1024");
  refused({.prompt = {8192}}, Code::kBadData, "token 8192");
  refused({.prompt = {-1}}, Code::kBadData, "token -1");
  refused({.prompt = {5}, .choices = 0}, Code::kUsage, "0 choices");
  refused({.prompt = {5}, .max_tokens = -2}, Code::kUsage, "-2");
  refused({.prompt = {5}, .max_tokens = 3, .min_tokens = 4}, Code::kUsage, "at least 4");
  refused({.prompt = {5}, .sampling = {.temperature = -1}}, Code::kUsage, "temperature");
  refused({.prompt = {5}, .logprobs = -1}, Code::kUsage, "top_logprobs");
  EXPECT_EQ(service->load().finished + service->load().failed, 0);
}

TEST(C33, APromptThatFillsTheContextHasAReplyOfNoTokens) {
  const auto service = open_service({}, 128);
  const auto heard = run(*service, {.prompt = std::vector<int32_t>(128, 5), .choices = 2, .min_tokens = 1});
  EXPECT_FALSE(heard->wait().error);
  for (const int i : {0, 1}) {
    EXPECT_EQ(heard->choice(i).text, "");
    EXPECT_EQ(heard->choice(i).end->reason, FinishReason::kLength);
    EXPECT_EQ(heard->choice(i).end->tokens, 0);
  }
  expect_idle(*service);
}

TEST(Service, SaysWhyAModelCannotBeOpened) {
  const auto missing = Service::open({.model_path = "/no/such.gguf"}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNoInput);
}

TEST(Service, ChoiceZeroIsTheReplyOfOne) {
  const auto service = open_service();
  Work work{.prompt = asked(*service, "Write a sentence."), .max_tokens = 24};
  work.sampling = {.temperature = 1, .seed = 7};
  const HeardChoice one = run(*service, work)->choice();
  work.choices = 5;
  const auto five = run(*service, work);
  EXPECT_EQ(five->choice(0).ids, one.ids);
  EXPECT_EQ(five->choice(0).text, one.text);
  int64_t tokens = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(five->choice(i).end) << i;
    tokens += five->choice(i).end->tokens;
  }
  EXPECT_EQ(five->wait().new_tokens, tokens);
  EXPECT_EQ(five->wait().prompt_tokens, static_cast<int64_t>(work.prompt.size())) << "counted once";
  expect_idle(*service);
}

TEST(C27, EachEndingHasItsReason) {
  const auto service = open_service();
  const Work work{.prompt = asked(*service, "Who are you?")};
  const HeardChoice whole = run(*service, work)->choice();
  EXPECT_EQ(whole.end->reason, FinishReason::kStop);
  EXPECT_FALSE(whole.end->stop);

  Work cut = work;
  cut.max_tokens = 4;
  EXPECT_EQ(run(*service, cut)->choice().end->reason, FinishReason::kLength);

  Work stopped = work;
  stopped.stop = {"nowhere", "demo"};
  const HeardChoice reply = run(*service, stopped)->choice();
  EXPECT_EQ(reply.end->reason, FinishReason::kStop);
  EXPECT_EQ(reply.end->stop, "demo");
  EXPECT_EQ(reply.text, whole.text.substr(0, whole.text.find("demo")));
}

TEST(C33, AReplyEndsAtTheContextsLastPosition) {
  const auto service = open_service({}, 256);
  for (const int64_t prompt : {1, 128, 255}) {
    for (const int choices : {1, 2}) {
      Work work = endless(*service);
      work.prompt.assign(static_cast<size_t>(prompt), 300);
      work.choices = choices;
      const auto heard = run(*service, work);
      for (int i = 0; i < choices; ++i) {
        EXPECT_EQ(heard->choice(i).end->reason, FinishReason::kLength) << prompt;
        EXPECT_EQ(prompt + heard->choice(i).end->tokens, 256) << prompt;
      }
      EXPECT_FALSE(heard->wait().error);
    }
  }
  expect_idle(*service);
}

TEST(C52, NeighboursChangeNothing) {
  const auto service = open_service({.sequences = 32});
  const auto work = [&](int i) {
    Work w{.prompt = asked(*service, "Number " + std::to_string(i) + ", what do you think of rain?"),
           .max_tokens = 12 + i};
    if (i % 2 == 1) w.sampling = {.temperature = 1, .top_p = 0.9f, .seed = static_cast<uint64_t>(i)};
    w.logprobs = 0;
    return w;
  };
  std::vector<HeardChoice> alone;
  for (int i = 0; i < 32; ++i) alone.push_back(run(*service, work(i))->choice());
  std::vector<std::shared_ptr<Heard>> together;
  for (int i = 0; i < 32; ++i) together.push_back(start(*service, work(i)));
  for (int i = 0; i < 32; ++i) {
    together[i]->wait();
    const HeardChoice reply = together[i]->choice();
    EXPECT_EQ(reply.ids, alone[i].ids) << i;
    EXPECT_EQ(reply.text, alone[i].text) << i;
    ASSERT_EQ(reply.scores.size(), reply.ids.size()) << i;
    for (size_t t = 0; t < reply.scores.size(); ++t)
      EXPECT_EQ(reply.scores[t].logprob, alone[i].scores[t].logprob) << i << ", token " << t;
  }
  expect_idle(*service);
}

TEST(C52, PreemptionChangesNothing) {
  const auto work = [](const Service& service, int i) {
    Work w{.prompt = asked(service, "Story " + std::to_string(i)),
           .max_tokens = 200,
           .ignore_end = true,
           .logprobs = 0};
    w.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(i)};
    return w;
  };
  const auto roomy = open_service({.sequences = 1}, 256);
  const auto tight = open_service({.sequences = 6, .kv_positions = 512}, 256);
  std::vector<std::shared_ptr<Heard>> together;
  for (int i = 0; i < 6; ++i) together.push_back(start(*tight, work(*tight, i)));
  for (int i = 0; i < 6; ++i) {
    const HeardChoice alone = run(*roomy, work(*roomy, i))->choice();
    EXPECT_FALSE(together[i]->wait().error);
    const HeardChoice reply = together[i]->choice();
    EXPECT_EQ(reply.ids, alone.ids) << i;
    EXPECT_EQ(reply.text, alone.text) << i;
    ASSERT_EQ(reply.scores.size(), alone.scores.size()) << i;
    for (size_t t = 0; t < reply.scores.size(); ++t)
      EXPECT_EQ(reply.scores[t].logprob, alone.scores[t].logprob);
  }
  EXPECT_GT(tight->load().preempted, 0);
  expect_idle(*tight);
}

TEST(C52, GuessesChangeNothing) {
  const auto plain = open_service({.sequences = 1}, 256);
  const auto guessing = take(Service::open(
      {.model_path = kDemo, .context = 256, .draft_model = kDemo, .prompt_lookup = 3}, {.sequences = 3}));
  Work work{.prompt = asked(*plain, "Say: la la la la la la la la."),
            .choices = 3,
            .max_tokens = 40,
            .logprobs = 1};
  work.sampling = {.temperature = 0.7f, .seed = 11};
  const auto expected = run(*plain, work), guessed = run(*guessing, work);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(guessed->choice(i).ids, expected->choice(i).ids) << i;
    for (size_t t = 0; t < expected->choice(i).scores.size(); ++t)
      EXPECT_EQ(guessed->choice(i).scores[t].logprob, expected->choice(i).scores[t].logprob);
  }
  EXPECT_GT(guessed->wait().drafted_tokens, 0);
  expect_idle(*guessing);
  EXPECT_EQ(guessing->load().drafted, guessed->wait().drafted_tokens);
}

TEST(C71, ACancelledRequestIsGoneInEveryPhase) {
  const auto service = open_service({.sequences = 2});
  std::vector<Service::Ticket> tickets;
  std::vector<std::shared_ptr<Heard>> heard;
  for (int i = 0; i < 6; ++i) {  // two run, four wait
    heard.push_back(std::make_shared<Heard>());
    tickets.push_back(take(service->submit(endless(*service), heard.back())));
  }
  heard[0]->wait_for_text();
  service->cancel(tickets[5]);  // in the queue
  EXPECT_FALSE(heard[5]->wait().error);
  EXPECT_EQ(heard[5]->choice().end->reason, FinishReason::kCancelled);
  EXPECT_EQ(heard[5]->wait().new_tokens, 0);
  service->cancel(tickets[0]);  // while it decodes
  heard[0]->wait();
  EXPECT_EQ(heard[0]->choice().end->reason, FinishReason::kCancelled);
  EXPECT_GT(heard[0]->wait().new_tokens, 0);
  for (const auto ticket : tickets) service->cancel(ticket);
  service->cancel(12345);
  for (const auto& h : heard) h->wait();
  expect_idle(*service);
  EXPECT_EQ(service->load().cancelled, 6);
  EXPECT_FALSE(run(*service, {.prompt = asked(*service, "Hi"), .max_tokens = 2})->wait().error);
}

TEST(Service, ACancelFromTheListenerItself) {
  const auto service = open_service();
  struct Impatient : Heard {
    void on_delta(Delta delta) override {
      Heard::on_delta(std::move(delta));
      service->cancel(ticket);
    }
    Service* service = nullptr;
    std::atomic<Service::Ticket> ticket = 0;
  };
  const auto heard = std::make_shared<Impatient>();
  heard->service = service.get();
  heard->ticket = take(service->submit(endless(*service), heard));
  heard->wait();
  EXPECT_EQ(heard->choice().end->reason, FinishReason::kCancelled);
  expect_idle(*service);
}

TEST(Service, AFullQueueIsBusy) {
  const auto service = open_service({.sequences = 1, .queue = 2});
  std::vector<std::shared_ptr<Heard>> heard{start(*service, endless(*service))};
  heard[0]->wait_for_text();
  wait_until([&] { return service->load().running == 1; });
  for (int i = 0; i < 2; ++i) heard.push_back(start(*service, endless(*service)));
  const auto refused = service->submit(endless(*service), std::make_shared<Heard>());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kBusy);
  EXPECT_EQ(service->load().waiting, 2);
}

TEST(Service, ItsEndEndsWhatRuns) {
  auto service = open_service({.sequences = 1});
  std::vector<std::shared_ptr<Heard>> heard;
  for (int i = 0; i < 3; ++i) heard.push_back(start(*service, endless(*service)));
  service.reset();
  for (const auto& h : heard) {
    h->wait();
    EXPECT_EQ(h->choice().end->reason, FinishReason::kCancelled);
  }
}

TEST(Service, ADeadlineEndsARequestThatRunsAndOneThatWaits) {
  const auto service = open_service({.sequences = 1});
  Work work = endless(*service);
  work.deadline = std::chrono::steady_clock::now() + 100ms;
  const auto running = start(*service, work), waiting = start(*service, work);
  for (const auto& h : {running, waiting}) {
    const Outcome outcome = h->wait();
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code, Code::kBusy);
    EXPECT_NE(outcome.error->message.find("deadline"), std::string::npos);
  }
  expect_idle(*service);
}

TEST(Service, ABannedEndNeverComesAndTheLeastTokensDo) {
  const auto service = open_service();
  Work work{.prompt = asked(*service, "Hi"), .max_tokens = 200, .ignore_end = true};
  HeardChoice reply = run(*service, work)->choice();
  EXPECT_EQ(reply.end->tokens, 200);
  work.ignore_end = false;
  const int64_t natural = run(*service, work)->choice().end->tokens;
  ASSERT_LT(natural, 150);
  work.min_tokens = natural + 20;
  reply = run(*service, work)->choice();
  EXPECT_GT(reply.end->tokens, natural + 20);
}

TEST(C22, AReplyIsHeldToItsGrammar) {
  const auto service = open_service();
  Work work{.prompt = asked(*service, "Is water wet?"), .max_tokens = 40};
  work.grammar = take(read_gbnf("root ::= \"yes\" | \"no\""));
  for (uint64_t seed = 0; seed < 8; ++seed) {
    work.sampling = {.temperature = 2, .seed = seed};
    const HeardChoice reply = run(*service, work)->choice();
    EXPECT_EQ(reply.end->reason, FinishReason::kStop);
    EXPECT_TRUE(reply.text == "yes" || reply.text == "no") << reply.text;
  }
  // A character of four bytes, and with it C19: it comes whole.
  work.grammar = take(read_gbnf("root ::= \"\xF0\x9F\x98\x80\" \"\xF0\x9F\x98\x80\""));
  work.choices = 2;
  const auto heard = run(*service, work);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(heard->choice(i).text, "\xF0\x9F\x98\x80\xF0\x9F\x98\x80");
    for (const std::string& piece : heard->choice(i).pieces) EXPECT_EQ(piece.size() % 4, 0u);
  }
}

TEST(C20, BytesThatAreNoTextAreStillAReply) {
  const auto service = open_service();
  Work work{.prompt = asked(*service, "Hi"), .max_tokens = 50, .ignore_end = true, .logprobs = 0};
  const auto& t = service->tokenizer();
  for (int32_t id = 0; id < t.size(); ++id)
    if (!t.is_control(id) && t.piece(id).size() == 1 && static_cast<uint8_t>(t.piece(id)[0]) >= 0x80)
      work.sampling.logit_bias.emplace_back(id, 100.0f);
  ASSERT_GE(work.sampling.logit_bias.size(), 100u);
  const HeardChoice reply = run(*service, work)->choice();
  EXPECT_EQ(reply.ids.size(), 50u);
  EXPECT_EQ(reply.scores.size(), 50u);
  EXPECT_NE(reply.text.find("\xEF\xBF\xBD"), std::string::npos);
}

TEST(Service, ScoresNameTheMostProbableFirst) {
  const auto service = open_service();
  Work work{.prompt = asked(*service, "Who are you?"), .max_tokens = 8, .logprobs = 3};
  const HeardChoice reply = run(*service, work)->choice();
  ASSERT_EQ(reply.scores.size(), reply.ids.size());
  for (const TokenScore& s : reply.scores) {
    ASSERT_EQ(s.top.size(), 3u);
    EXPECT_EQ(s.top[0].id, s.id) << "greedy picks the most probable";
    EXPECT_EQ(s.top[0].logprob, s.logprob);
    EXPECT_GE(s.top[0].logprob, s.top[1].logprob);
    EXPECT_LE(s.logprob, 0);
  }
}

TEST(Service, ScoresAPromptAsAReplyOfTheSameTokens) {
  const auto service = open_service();
  struct Scores : Heard {
    void on_prompt_scores(std::vector<TokenScore> scores) override { prompt = std::move(scores); }
    std::vector<TokenScore> prompt;
  };
  Work work{.prompt = asked(*service, "Who are you?"), .max_tokens = 90, .ignore_end = true, .logprobs = 2};
  const HeardChoice reply = run(*service, work)->choice();
  const size_t asked_tokens = work.prompt.size();
  work.prompt.insert(work.prompt.end(), reply.ids.begin(), reply.ids.end());
  work.prompt_logprobs = true;
  work.max_tokens = 0;
  work.ignore_end = false;
  for (int time = 0; time < 2;
       ++time) {  // the second finds the prompt in the cache, and scores it all the same
    const auto heard = std::make_shared<Scores>();
    take(service->submit(work, heard));
    EXPECT_FALSE(heard->wait().error);
    ASSERT_EQ(heard->prompt.size(), work.prompt.size() - 1);
    for (size_t i = 0; i < reply.ids.size(); ++i) {
      const TokenScore& s = heard->prompt[asked_tokens - 1 + i];
      EXPECT_EQ(s.id, reply.ids[i]);
      EXPECT_EQ(s.logprob, reply.scores[i].logprob);
      EXPECT_EQ(s.top.size(), 2u);
    }
  }
}

TEST(Service, TellsHowFarAPromptIs) {
  const auto service = take(Service::open({.model_path = kDemo, .chunk = 64}, {}));
  struct Progress : Heard {
    void on_prefill(int64_t done, int64_t of) override {
      EXPECT_FALSE(choice().end);
      steps.push_back(done);
      prompt = of;
    }
    std::vector<int64_t> steps;
    int64_t prompt = 0;
  };
  const auto heard = std::make_shared<Progress>();
  take(service->submit({.prompt = std::vector<int32_t>(500, 300), .max_tokens = 1}, heard));
  heard->wait();
  ASSERT_GE(heard->steps.size(), 500u / 64);
  EXPECT_TRUE(std::ranges::is_sorted(heard->steps));
  EXPECT_EQ(heard->steps.back(), 500);
  EXPECT_EQ(heard->prompt, 500);
}

TEST(C36, AWarmCacheChangesNothingAndSaysWhatItSaved) {
  const auto service = open_service();
  Work work{.prompt = asked(*service,
                            "Tell me, in some detail, what the sea looks like in winter, and why it "
                            "does so, what colours it has, how high the waves are, and who sails."),
            .max_tokens = 30,
            .logprobs = 0};
  work.sampling = {.temperature = 1, .seed = 3};
  const auto cold = run(*service, work), warm = run(*service, work);
  EXPECT_EQ(cold->wait().cached_tokens, 0);
  EXPECT_GE(warm->wait().cached_tokens, static_cast<int64_t>(work.prompt.size()) - 64);
  EXPECT_EQ(warm->choice().ids, cold->choice().ids);
  EXPECT_EQ(warm->choice().text, cold->choice().text);
  for (size_t i = 0; i < cold->choice().scores.size(); ++i)
    EXPECT_EQ(warm->choice().scores[i].logprob, cold->choice().scores[i].logprob);
}

TEST(C61, NobodyFindsWhatAnotherTenantLeft) {
  const auto service = open_service();
  Work work{.prompt = std::vector<int32_t>(200, 300), .max_tokens = 2};
  work.tenant = "a";
  run(*service, work);
  EXPECT_GT(run(*service, work)->wait().cached_tokens, 0);
  work.tenant = "b";
  EXPECT_EQ(run(*service, work)->wait().cached_tokens, 0) << "another tenant";
  work.salt = "shared";
  EXPECT_EQ(run(*service, work)->wait().cached_tokens, 0);
  work.tenant = "a";
  EXPECT_GT(run(*service, work)->wait().cached_tokens, 0) << "an equal salt";
  work.salt = "other";
  EXPECT_EQ(run(*service, work)->wait().cached_tokens, 0);
  work.salt.clear();
  work.tenant = "shared";
  EXPECT_EQ(run(*service, work)->wait().cached_tokens, 0) << "a tenant is no salt";
}

TEST(C61, ASessionBelongsToItsTenant) {
  const auto service = open_service();
  Work work{.prompt = std::vector<int32_t>(200, 300), .max_tokens = 2};
  work.tenant = "a";
  work.session = "s";
  run(*service, work);
  EXPECT_EQ(service->load().sessions, 1);
  work.tenant = "b";
  const auto refused = service->submit(work, std::make_shared<Heard>());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_EQ(service->end_session("b", "s").error().code, Code::kNotFound);
  EXPECT_EQ(service->end_session("a", "t").error().code, Code::kNotFound);
  EXPECT_TRUE(service->end_session("a", "s"));
  EXPECT_EQ(service->load().sessions, 0);
  EXPECT_EQ(service->end_session("a", "s").error().code, Code::kNotFound);
  EXPECT_FALSE(run(*service, work)->wait().error) << "now the name is free";
}

TEST(C72, WhatIsIdleHoldsNothing) {
  const auto service = open_service({.sequences = 4});
  std::vector<std::shared_ptr<Heard>> heard;
  for (int i = 0; i < 24; ++i) {
    auto h = std::make_shared<Heard>();
    const auto ticket = take(service->submit(endless(*service, 5 + i), h));
    if (i % 3 == 0) service->cancel(ticket);
    heard.push_back(h);
  }
  for (const auto& h : heard) h->wait();
  expect_idle(*service);
  const Load load = service->load();
  EXPECT_EQ(load.finished + load.cancelled, 24);
  EXPECT_EQ(load.failed, 0);
}

// The thread sleeps: what it uses of the processor while nothing is asked is next to nothing, once what it
// had to do is behind it, which is later where others want the processor too.
TEST(Service, AnIdleOneUsesNoProcessor) {
  const auto service = open_service();
  run(*service, {.prompt = asked(*service, "Hi"), .max_tokens = 2});
  double used = 1;  // seconds of half a second
  for (int i = 0; i < 10 && used >= 0.02; ++i) {
    const auto before = std::clock();
    std::this_thread::sleep_for(500ms);
    used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  }
  EXPECT_LT(used, 0.02);
}

}  // namespace
}  // namespace juno::api
