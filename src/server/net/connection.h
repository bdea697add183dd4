// SPDX-License-Identifier: Apache-2.0
// One connection: reads a request, has it answered, writes the answer, begins again. All of it runs on the
// strand of its socket; Stream is that socket, or TLS over it. A read is outstanding at all times, so that a
// client that leaves is noticed at once.
#pragma once
// clang-format off: asio 1.74 needs it and does not say so
#include <utility>
// clang-format on
#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "server/errors.h"
#include "server/net/head.h"
#include "server/net/outbox.h"
#include "server/net/transport.h"

namespace juno::server {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using boost::system::error_code;

// A connection as its transport knows it.
class Closable {
 public:
  virtual ~Closable() = default;
  virtual void leave() = 0;
};

// What the connections of a transport share.
struct Shared {
  const Listen& how;
  Front& front;
  asio::thread_pool workers;
  std::string id_prefix;  // of the request ids made here
  std::atomic<uint64_t> ids{0};
  std::atomic<int64_t> connections{0}, answering{0};
  std::mutex mutex;
  std::map<const Closable*, std::weak_ptr<Closable>> open;
};

// A request whose bytes are no HTTP, as its client is told.
Refusal malformed(const error_code& why, const Limits& limits);
// What the C library keeps of freed memory: else each worker would keep its largest request's.
void give_back_memory();
// Runs a route's handler; what it throws becomes a 500.
void run_handler(const Route& route, std::shared_ptr<Exchange> exchange, const Log& log);

template <class Stream>
class Connection final : public Closable, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <class... Args>
  Connection(Shared& shared, Args&&... args)
      : shared_(shared), stream_(std::forward<Args>(args)...), timer_(stream_.get_executor()) {
    ++shared_.connections;
  }
  ~Connection() override {
    report();
    --shared_.connections;
    const std::lock_guard lock(shared_.mutex);
    shared_.open.erase(this);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() {
    {
      const std::lock_guard lock(shared_.mutex);
      shared_.open.emplace(this, this->weak_from_this());
    }
    asio::dispatch(stream_.get_executor(), [self = this->shared_from_this()] { self->greet(); });
  }

  // At once, whatever is under way. On the strand, or when no thread runs it any more.
  void leave() override {
    if (state_ == State::kClosed) return;
    const auto last = std::exchange(staying_, nullptr);
    enter(State::kClosed);
    report();
    error_code ignored;
    socket().close(ignored);
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, tcp::socket>;
  static constexpr size_t kSmallRead = 4 << 10, kLargeRead = 64 << 10;
  static constexpr size_t kLargeBody = 1 << 20;       // what it needed is worth giving back to the system
  static constexpr size_t kMostBuffered = 128 << 10;  // of what is not parsed yet, or of a next request
  enum class State : uint8_t { kGreeting, kHead, kBody, kAnswering, kLingering, kClosed };
  using HeadParser = http::request_parser<http::empty_body>;
  using BodyParser = http::request_parser<http::string_body>;

  const Limits& limits() const { return shared_.how.limits; }
  auto& socket() { return stream_.lowest_layer(); }

  // ---- The clock: one timer, which looks again when something may be due.

  void enter(State state) {
    state_ = state;
    since_ = Clock::now();
    if (state == State::kClosed) timer_.cancel();
    else wait_until(due());
  }

  static Clock::duration span(Limits::Seconds s) { return std::chrono::duration_cast<Clock::duration>(s); }

  Clock::time_point due() const {
    const Limits& l = limits();
    switch (state_) {
      case State::kGreeting:
        return since_ + span(l.head_time);
      case State::kHead:
        return since_ + span(begun_ || served_ == 0 ? l.head_time : l.idle);
      case State::kBody:
        return since_ + span(l.body_grace + Limits::Seconds(static_cast<double>(body_bytes_) / l.body_rate));
      case State::kAnswering:
        if (writing_) return progress_ + span(l.write_time);
        return comments_ ? progress_ + span(l.quiet) : Clock::now() + std::chrono::hours(1);
      case State::kLingering:
        return since_ + span(l.linger);
      case State::kClosed:
        break;
    }
    return Clock::time_point::max();
  }

  void wait_until(Clock::time_point when) {
    // While an answer is written its state changes without the timer being set anew.
    if (state_ == State::kAnswering) when = std::min(when, Clock::now() + span(limits().quiet));
    timer_.expires_at(when);
    timer_.async_wait([weak = this->weak_from_this()](const error_code& ec) {
      if (const auto self = weak.lock(); self && !ec) self->on_timer();
    });
  }

  void on_timer() {
    if (state_ == State::kClosed) return;
    if (Clock::now() < due()) return wait_until(due());
    if ((state_ == State::kHead && begun_) || state_ == State::kBody)
      return refuse(Refusal(408, kInvalidRequest, "request_timeout", {},
                            "The request came too slowly: its header must be complete within 10 seconds "
                            "and its body must come at 1 KiB a second."));
    if (state_ != State::kAnswering || writing_) return leave();
    if (comments_) {
      add_piece(": keep-alive\n\n");
      write();
    }
    wait_until(due());
  }

  // ---- Reading.

  void greet() {
    if constexpr (kTls) {
      enter(State::kGreeting);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](const error_code& ec) {
                                if (self->state_ == State::kClosed) return;
                                ec ? self->leave() : self->next_request();
                              });
    } else {
      next_request();
    }
  }

  void next_request() {
    head_.emplace();
    head_->header_limit(static_cast<uint32_t>(limits().header));
    head_->body_limit(UINT64_MAX);  // judged after the route, in on_head()
    body_.reset();
    head_bytes_ = body_bytes_ = 0;
    request_ = {};
    verdict_ = {};
    begun_ = buffer_.size() > 0;
    if (!begun_) buffer_.shrink_to_fit();
    if (!reading_) input_ = {};
    enter(State::kHead);
    begun_ ? parse() : read();
  }

  void read() {
    if (reading_ || state_ == State::kClosed) return;
    const size_t size = state_ == State::kBody || state_ == State::kLingering ? kLargeRead : kSmallRead;
    reading_ = true;
    // Not into buffer_, which is parsed, emptied and moved while this read waits.
    if (input_.size() < size) input_.resize(size);
    stream_.async_read_some(asio::buffer(input_.data(), size),
                            [self = this->shared_from_this()](const error_code& ec, size_t n) {
                              self->reading_ = false;
                              self->on_read(ec, n);
                            });
  }

  void on_read(const error_code& ec, size_t n) {
    if (state_ == State::kClosed) return;
    if (ec) return on_end_of_input(ec);
    buffer_.commit(asio::buffer_copy(buffer_.prepare(n), asio::buffer(input_.data(), n)));
    switch (state_) {
      case State::kHead:
        if (!std::exchange(begun_, true)) enter(State::kHead);
        return parse();
      case State::kBody:
        body_bytes_ += n;
        return parse();
      case State::kLingering:
        buffer_.clear();
        return read();
      case State::kAnswering:  // a next request is kept, but not a flood of them
        return buffer_.size() > kMostBuffered / 2 ? leave() : read();
      default:
        return;
    }
  }

  // A client that has shut down its side may still read an answer that is under way; work for it ends.
  void on_end_of_input(const error_code& ec) {
    if (state_ != State::kAnswering || ec != asio::error::eof) return leave();
    gone_ = true;
    staying_ = this->shared_from_this();
    box_->left();
  }

  void parse() {
    error_code ec;
    if (state_ == State::kHead) {
      head_bytes_ += take_input(*head_, ec);
      const size_t seen = head_bytes_ + (head_->is_header_done() ? 0 : buffer_.size());
      if (seen > limits().header) ec = http::error::header_limit;
      if (!ec && head_->is_header_done()) return on_head();
    } else {
      while (!ec && !body_->is_done() && buffer_.size() > 0) take_input(*body_, ec);
      if (!ec && body_->is_done()) return on_body();
      // The rest of a chunk's first line would have to be endless.
      if (buffer_.size() > kMostBuffered - kLargeRead) ec = http::error::bad_chunk_extension;
    }
    if (ec && ec != http::error::need_more) return refuse(malformed(ec, limits()));
    read();
  }

  template <class Parser>
  size_t take_input(Parser& parser, error_code& ec) {
    const size_t n = parser.put(buffer_.data(), ec);
    buffer_.consume(n);
    return n;
  }

  void on_head() {
    arrived_ = Clock::now();
    const auto& message = head_->get();
    const auto text = [](auto view) { return std::string(view.data(), view.size()); };
    http11_ = message.version() >= 11;
    keep_alive_ = http11_ && message.keep_alive();
    request_.method = text(message.method_string());
    head_only_ = request_.method == "HEAD";
    if (head_only_) request_.method = "GET";
    for (const auto& field : message)
      request_.headers.emplace_back(text(field.name_string()), text(field.value()));
    if (!split_target(text(message.target()), request_)) request_.path.clear();
    name_request();
    if (auto fault = head_fault(request_.headers); !fault.empty())
      return refuse(bad("invalid_value", {}, std::move(fault)));
    verdict_ = shared_.front.admit(request_);
    const auto length = head_->content_length();
    const bool has_body = head_->chunked() || (length && *length > 0);
    if (verdict_.refusal) return answer(std::move(*verdict_.refusal), !has_body);
    if (length && *length > limits().body) return refuse(malformed(http::error::body_limit, limits()));
    const auto expected = request_.header("expect");
    body_.emplace(std::move(*head_));
    body_->body_limit(limits().body);
    body_->eager(true);
    enter(State::kBody);
    body_bytes_ = buffer_.size();
    if (has_body && expected && body_bytes_ == 0 && same_word(*expected, "100-continue")) {
      out_ += "HTTP/1.1 100 Continue\r\n\r\n";
      write();
    }
    parse();
  }

  void name_request() {
    const auto id = request_.header("x-request-id");
    request_.id = id && is_request_id(*id) ? std::string(*id)
                                           : fmt::format("{}-{:x}", shared_.id_prefix, ++shared_.ids);
  }

  void on_body() {
    request_.body = std::move(body_->get().body());
    open_box();
    read();
    const Route& route = *verdict_.route;
    auto exchange = std::make_shared<Answer>(box_);
    if (route.quick) return run_handler(route, std::move(exchange), shared_.how.log);
    const bool large = exchange->request().body.size() >= kLargeBody;
    asio::post(shared_.workers,
               [&route, exchange = std::move(exchange), &log = shared_.how.log, large]() mutable {
                 run_handler(route, std::move(exchange), log);
                 if (large) give_back_memory();
               });
  }

  // ---- Answering.

  void open_box() {
    if (request_.id.empty()) {
      arrived_ = Clock::now();
      name_request();
    }
    const auto wake = [weak = this->weak_from_this()] {
      if (const auto self = weak.lock()) asio::post(self->stream_.get_executor(), [self] { self->look(); });
    };
    const auto later = [weak = this->weak_from_this()](std::chrono::milliseconds after,
                                                       std::function<void()> then) {
      const auto self = weak.lock();
      if (!self) return;
      const auto timer = std::make_shared<asio::steady_timer>(self->stream_.get_executor(), after);
      timer->async_wait([timer, then = std::move(then)](const error_code& ec) {
        if (!ec) then();
      });
    };
    box_ = std::make_shared<Outbox>(std::move(request_), Hooks{wake, later}, limits().stream_room);
    ended_ = broken_ = comments_ = chunked_ = false;
    status_ = 0;
    sent_ = 0;
    ++served_;
    ++shared_.answering;
    enter(State::kAnswering);
  }

  // go_on: all of the request has been read, so that another may follow.
  void answer(HttpReply reply, bool go_on) {
    keep_alive_ = keep_alive_ && go_on;
    open_box();
    box_->reply(std::move(reply));
    read();
  }

  void refuse(const Refusal& why) { answer(shared_.front.spell(why, request_), false); }

  // Something is there to write, or an answer is complete.
  void look() {
    if (!box_ || state_ != State::kAnswering) return;
    if (writing_) {
      if (box_->overrun()) leave();
      return;
    }
    Outbox::Taken taken = box_->take();
    if (taken.head) add_head(std::move(*taken.head), taken.stream);
    if (!taken.bytes.empty()) add_piece(taken.bytes);
    taken_ = taken.bytes.size();
    ended_ = taken.ended;
    broken_ = taken.broken;
    if (ended_ && !broken_ && chunked_) out_ += "0\r\n\r\n";
    if (!out_.empty()) write();
    else if (ended_) end_answer();
  }

  void add_head(HttpReply reply, bool stream) {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    const Framing framing = !stream ? Framing::kLength : http11_ ? Framing::kChunked : Framing::kUntilClose;
    keep_alive_ = keep_alive_ && framing != Framing::kUntilClose && !gone_;
    chunked_ = framing == Framing::kChunked && !head_only_;
    comments_ = stream && !head_only_ && reply.type.starts_with("text/event-stream");
    status_ = reply.status;
    reply.headers.emplace_back("x-request-id", box_->request().id);
    reply.headers.emplace_back("X-Juno-Latency-Ms",
                               fmt::format("{:.1f}", Milliseconds(Clock::now() - arrived_).count()));
    for (auto& header : verdict_.extra) reply.headers.push_back(header);
    out_ += reply_head(reply, framing, reply.body.size(), keep_alive_);
    if (!stream && !head_only_) {
      out_ += reply.body;
      sent_ = reply.body.size();
    }
  }

  void add_piece(std::string_view bytes) {
    if (head_only_) return;
    sent_ += bytes.size();
    if (chunked_) out_ += fmt::format("{:x}\r\n", bytes.size());
    out_ += bytes;
    if (chunked_) out_ += "\r\n";
  }

  void write() {
    if (!std::exchange(writing_, true)) progress_ = Clock::now();
    stream_.async_write_some(
        asio::buffer(out_) + written_,
        [self = this->shared_from_this()](const error_code& ec, size_t n) { self->on_written(ec, n); });
  }

  void on_written(const error_code& ec, size_t n) {
    if (state_ == State::kClosed) return;
    if (ec) return leave();
    progress_ = Clock::now();
    written_ += n;
    if (written_ < out_.size()) return write();
    writing_ = false;
    written_ = 0;
    if (out_.capacity() > kMostBuffered) out_ = {};
    out_.clear();
    if (!box_) return;
    box_->written(std::exchange(taken_, 0));
    ended_ ? end_answer() : look();
  }

  void end_answer() {
    complete_ = !broken_;
    report();
    if (gone_) return leave();
    if (broken_ || !keep_alive_) return linger();
    next_request();
  }

  // Tells how the request ended, once.
  void report() {
    if (!box_) return;
    --shared_.answering;
    auto box = std::exchange(box_, nullptr);
    shared_.front.ended({.request = box->request(),
                         .route = verdict_.route,
                         .status = status_,
                         .bytes = sent_,
                         .seconds = Limits::Seconds(Clock::now() - arrived_).count(),
                         .complete = std::exchange(complete_, false),
                         .user = box->user()});
    box->left();
    if (box->request().body.size() < kLargeBody) return;
    asio::post(shared_.workers, [box = std::move(box)]() mutable {
      box.reset();
      give_back_memory();
    });
  }

  // Closing at once, while the client still sends, would destroy the reply on its way.
  void linger() {
    enter(State::kLingering);
    buffer_.clear();
    if constexpr (kTls) {
      stream_.async_shutdown([self = this->shared_from_this()](const error_code&) { self->leave(); });
    } else {
      error_code ignored;
      socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
    read();
  }

  Shared& shared_;
  Stream stream_;
  asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_{kMostBuffered};  // what is not parsed yet
  std::vector<char> input_;                          // of the read that is outstanding
  State state_ = State::kGreeting;
  Clock::time_point since_, arrived_, progress_;  // of the state, of the request, of writing

  std::optional<HeadParser> head_;
  std::optional<BodyParser> body_;
  HttpRequest request_;
  Verdict verdict_;
  size_t head_bytes_ = 0, body_bytes_ = 0, served_ = 0;
  bool begun_ = false, reading_ = false, gone_ = false;
  bool http11_ = true, keep_alive_ = false, head_only_ = false;

  std::shared_ptr<Connection> staying_;  // itself, while an answer is due and no read holds it any more
  std::shared_ptr<Outbox> box_;
  std::string out_;
  size_t written_ = 0, taken_ = 0;
  uint64_t sent_ = 0;
  int status_ = 0;
  bool writing_ = false, chunked_ = false, comments_ = false;
  bool ended_ = false, broken_ = false, complete_ = false;
};

}  // namespace juno::server
