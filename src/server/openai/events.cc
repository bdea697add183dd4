// SPDX-License-Identifier: Apache-2.0
#include "server/openai/events.h"

namespace juno::server {

void Events::open() {
  if (opened_) return;
  opened_ = true;
  HttpReply head{.status = 200, .type = "text/event-stream", .headers = std::move(headers_)};
  head.headers.emplace_back("Cache-Control", "no-cache");
  head.headers.emplace_back("X-Accel-Buffering", "no");
  exchange_->start(std::move(head));
}

void Events::send(const Json& data) {
  open();
  exchange_->send("data: " + to_text(data) + "\n\n");
}

void Events::send(std::string_view event, const Json& data) {
  open();
  exchange_->send("event: " + std::string(event) + "\ndata: " + to_text(data) + "\n\n");
}

void Events::done() {
  open();
  exchange_->send("data: [DONE]\n\n");
  exchange_->finish();
}

void Events::finish() {
  open();
  exchange_->finish();
}

void Events::fail(const Refusal& why) {
  if (!opened_) return exchange_->reply(openai_reply(why));
  exchange_->send("data: " + error_json(why.type, why.code, why.param, why.message) + "\n\n");
  exchange_->abort();
}

}  // namespace juno::server
