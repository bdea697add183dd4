// SPDX-License-Identifier: Apache-2.0
// A client that sends and reads bytes as they are, right or wrong.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

namespace juno::server::test {

// Far more than what is waited for takes, also on a machine that is busy.
constexpr double kLong = 60;

class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  // False once the other side takes nothing any more.
  bool send(std::string_view bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  void shut_down_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  // Reads until `text` has come (and returns all up to its end), the connection is closed or the time is
  // over.
  std::string read_until(std::string_view text, double seconds = kLong) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      const size_t at = text.empty() ? seen_.npos : seen_.find(text);
      const auto left = std::chrono::duration<double, std::milli>(end - std::chrono::steady_clock::now());
      if (at != seen_.npos || closed_ || left.count() <= 0) {
        const std::string result = seen_.substr(0, at == seen_.npos ? at : at + text.size());
        seen_.erase(0, result.size());
        return result;
      }
      pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, static_cast<int>(left.count()) + 1) <= 0) continue;
      char buffer[65536];
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) closed_ = true;
      else seen_.append(buffer, static_cast<size_t>(n));
    }
  }
  std::string read_all(double seconds = kLong) { return read_until("", seconds); }
  // The head of a reply, and its body by Content-Length.
  std::string read_reply(double seconds = kLong) {
    std::string reply = read_until("\r\n\r\n", seconds);
    const size_t at = reply.find("Content-Length: ");
    if (at == reply.npos) return reply;
    const size_t size = std::stoul(reply.substr(at + 16));
    while (seen_.size() < size && !closed_) seen_ += read_until("}", seconds);
    reply += seen_.substr(0, size);
    seen_.erase(0, size);
    return reply;
  }
  bool closed() const { return closed_; }

 private:
  int fd_;
  bool connected_ = false, closed_ = false;
  std::string seen_;
};

}  // namespace juno::server::test
