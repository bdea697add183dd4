// SPDX-License-Identifier: Apache-2.0
// Server-sent events: the head goes out with the first of them, so that what fails before is a plain reply.
#pragma once
#include <memory>
#include <string_view>

#include "server/json.h"
#include "server/refusal.h"

namespace juno::server {

class Events {
 public:
  Events(std::shared_ptr<Exchange> exchange, Headers headers)
      : exchange_(std::move(exchange)), headers_(std::move(headers)) {}

  void open();
  bool opened() const { return opened_; }
  void send(const Json& data);                          // data: …
  void send(std::string_view event, const Json& data);  // event: …, data: …
  void done();                                          // data: [DONE], and the end
  void finish();                                        // the end
  // An event with the error, after which the connection closes; before the head a plain reply.
  void fail(const Refusal& why);

 private:
  const std::shared_ptr<Exchange> exchange_;
  Headers headers_;
  bool opened_ = false;
};

}  // namespace juno::server
