// SPDX-License-Identifier: Apache-2.0
#include "server/net/outbox.h"

#include "server/auth.h"
#include "server/errors.h"

namespace juno::server {

Outbox::Outbox(HttpRequest request, Hooks hooks, size_t room)
    : request_(std::move(request)), hooks_(std::move(hooks)), room_(room) {}

// One call of wake for all that happens until the connection looks.
void Outbox::tell(std::unique_lock<std::mutex> lock) {
  const bool first = !std::exchange(woken_, true);
  lock.unlock();
  if (first) hooks_.wake();
}

void Outbox::reply(HttpReply reply) {
  std::unique_lock lock(mutex_);
  if (state_ != State::kOpen) return;
  state_ = State::kEnded;
  head_ = std::move(reply);
  // Outlives the lock: it may hold the last hold on its owner.
  const auto unused = std::exchange(on_close_, nullptr);
  tell(std::move(lock));
}

void Outbox::start(HttpReply head) {
  std::unique_lock lock(mutex_);
  if (state_ != State::kOpen) return;
  state_ = State::kStreaming;
  stream_ = true;
  head_ = std::move(head);
  tell(std::move(lock));
}

void Outbox::send(std::string bytes) {
  std::unique_lock lock(mutex_);
  if (state_ != State::kStreaming || bytes.empty()) return;
  pending_.fetch_add(bytes.size(), std::memory_order_relaxed);
  if (bytes_.empty()) bytes_ = std::move(bytes);
  else bytes_ += bytes;
  tell(std::move(lock));
}

void Outbox::end(bool broken) {
  std::unique_lock lock(mutex_);
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  broken_ = broken;
  const auto unused = std::exchange(on_close_, nullptr);
  tell(std::move(lock));
}

void Outbox::finish() { end(false); }
void Outbox::abort() { end(true); }

void Outbox::dropped() {
  if (!has_left())
    reply(error_reply(500, kServerError, "internal_error", {}, "The request was dropped without an answer."));
  end(true);
}

void Outbox::on_close(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kEnded) return;
    if (!left_) {
      on_close_ = std::move(then);
      return;
    }
  }
  then();
}

bool Outbox::ended() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kEnded;
}

bool Outbox::has_left() const {
  const std::lock_guard lock(mutex_);
  return left_;
}

void Outbox::later(std::chrono::milliseconds after, std::function<void()> then) {
  hooks_.later(after, [weak = weak_from_this(), then = std::move(then)] {
    if (const auto box = weak.lock(); box && !box->ended()) then();
  });
}

void Outbox::left() {
  std::function<void()> then;
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
    then = std::exchange(on_close_, nullptr);
  }
  if (then) then();
}

Outbox::Taken Outbox::take() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  return {.head = std::exchange(head_, {}),
          .bytes = std::exchange(bytes_, {}),
          .stream = stream_,
          .ended = state_ == State::kEnded,
          .broken = broken_};
}

bool Outbox::overrun() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  return stream_ && pending() > room_;
}

void Outbox::log_user(std::string_view user) {
  const std::lock_guard lock(mutex_);
  if (!user_.empty()) user_ += ',';
  user_ += short_hash(user);
}

std::string Outbox::user() const {
  const std::lock_guard lock(mutex_);
  return user_;
}

}  // namespace juno::server
