// SPDX-License-Identifier: Apache-2.0
// How /v1/responses tells a generation: as one object, or as typed events.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/openai/events.h"
#include "server/openai/generation.h"

namespace juno::server {

class ResponseVoice : public Voice {
 public:
  struct Head {
    Json response;  // all that is known before it runs: status in_progress, no output
    std::shared_ptr<api::Service> service;
    bool scored = false;  // include names message.output_text.logprobs
    bool stream = false;
    std::function<void(const Json& output)> keep = {};  // of a whole response; none: it is not stored
  };

  ResponseVoice(std::shared_ptr<Exchange> exchange, Headers headers, Head head);

  void waiting() override;
  void pieces(int choice, std::vector<dialect::Piece> pieces, std::vector<api::TokenScore> scores) override;
  void choice_end(int choice, const Ending& ending) override;
  void end(const Usage& usage) override;
  void fail(const Refusal& why) override;

 private:
  void begin();
  void open(const dialect::Piece& piece);
  void close(const char* status);
  void add(const std::string& text, const std::vector<api::TokenScore>& scores);
  Json part() const;  // the content of the open item
  Json item(const char* status, bool whole) const;
  Json scores_of(const std::vector<api::TokenScore>& scores) const;
  void send(const std::string& type, Json data);
  void send_here(const std::string& type, Json data, bool in_part);

  const std::shared_ptr<Exchange> exchange_;
  Headers headers_;
  std::optional<Events> events_;
  Head head_;
  int64_t sequence_ = 0;
  bool begun_ = false;
  Json output_ = Json::array();  // items that are closed
  std::string status_ = "completed";

  // Of the open item.
  std::optional<dialect::Piece::Kind> kind_;
  std::string id_, call_id_, name_, text_;
  std::vector<api::TokenScore> scores_;
};

}  // namespace juno::server
