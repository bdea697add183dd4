// SPDX-License-Identifier: Apache-2.0
// What stands between whoever answers a request, on any thread, and the connection that writes the answer on
// its own.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/http.h"

namespace juno::server {

// What a connection does for its outbox, from any thread.
struct Hooks {
  std::function<void()> wake;  // looks soon; never called under the lock
  std::function<void(std::chrono::milliseconds after, std::function<void()> then)> later;
};

class Outbox : public std::enable_shared_from_this<Outbox> {
 public:
  // room: bytes of a stream that may wait for a client that does not read.
  Outbox(HttpRequest request, Hooks hooks, size_t room);

  const HttpRequest& request() const { return request_; }

  // The answerer's side; see Exchange.
  void reply(HttpReply reply);
  void start(HttpReply head);
  void send(std::string bytes);
  void finish();
  void abort();
  void dropped();  // nobody will answer any more
  size_t pending() const { return pending_.load(std::memory_order_relaxed); }
  void on_close(std::function<void()> then);
  void later(std::chrono::milliseconds after, std::function<void()> then);
  void log_user(std::string_view user);

  // The connection's side.
  struct Taken {
    std::optional<HttpReply> head;  // once
    std::string bytes;              // of a stream
    bool stream = false, ended = false, broken = false;
  };
  Taken take();
  bool overrun();  // more waits than there is room for
  void written(size_t bytes) { pending_.fetch_sub(bytes, std::memory_order_relaxed); }
  void left();  // the client has gone
  std::string user() const;

 private:
  enum class State : uint8_t { kOpen, kStreaming, kEnded };

  bool ended() const;
  bool has_left() const;
  void end(bool broken);
  void tell(std::unique_lock<std::mutex> lock);

  const HttpRequest request_;
  const Hooks hooks_;
  const size_t room_;
  std::atomic<size_t> pending_{0};

  mutable std::mutex mutex_;
  State state_ = State::kOpen;
  bool woken_ = false, stream_ = false, broken_ = false, left_ = false;
  std::optional<HttpReply> head_;
  std::string bytes_, user_;
  std::function<void()> on_close_;
};

// The Exchange that a route holds. When the last one is gone and nothing was answered, a client that
// is still there is told.
class Answer final : public Exchange {
 public:
  explicit Answer(std::shared_ptr<Outbox> box) : box_(std::move(box)) {}
  ~Answer() override { box_->dropped(); }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  const HttpRequest& request() const override { return box_->request(); }
  void reply(HttpReply reply) override { box_->reply(std::move(reply)); }
  void start(HttpReply head) override { box_->start(std::move(head)); }
  void send(std::string bytes) override { box_->send(std::move(bytes)); }
  void finish() override { box_->finish(); }
  void abort() override { box_->abort(); }
  size_t pending() const override { return box_->pending(); }
  void on_close(std::function<void()> then) override { box_->on_close(std::move(then)); }
  void later(std::chrono::milliseconds after, std::function<void()> then) override {
    box_->later(after, std::move(then));
  }
  void log_user(std::string_view user) override { box_->log_user(user); }

 private:
  const std::shared_ptr<Outbox> box_;
};

}  // namespace juno::server
