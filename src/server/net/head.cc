// SPDX-License-Identifier: Apache-2.0
#include "server/net/head.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <ctime>

namespace juno::server {

bool split_target(std::string_view target, HttpRequest& request) {
  if (!target.starts_with('/')) return false;
  target = target.substr(0, target.find('#'));
  const size_t mark = target.find('?');
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
  const std::string_view path = target.substr(0, mark);
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      request.path += path[i];
      continue;
    }
    uint8_t byte = 0;
    const char* digits = path.data() + i + 1;
    if (path.size() - i < 3 || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) return false;
    request.path += static_cast<char>(byte);
    i += 2;
  }
  return request.path.find('\0') == std::string::npos;
}

std::string head_fault(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (same_word(name, "transfer-encoding") && !same_word(value, "chunked"))
      return "The header Transfer-Encoding takes no other value than chunked here.";
    const auto same = [&name = name](const auto& other) { return same_word(other.first, name); };
    for (const char* single :
         {"host", "origin", "content-type", "transfer-encoding", "authorization", "x-api-key"})
      if (same_word(name, single) && std::ranges::count_if(headers, same) > 1)
        return fmt::format("The header {} stands more than once.", name);
  }
  return "";
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

std::string reply_head(const HttpReply& reply, Framing framing, size_t length, bool keep_alive) {
  const auto status = static_cast<boost::beast::http::status>(reply.status);
  const auto reason = boost::beast::http::obsolete_reason(status);
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S GMT}\r\n", reply.status,
                  std::string_view(reason.data(), reason.size()), fmt::gmtime(std::time(nullptr)));
  const auto add = [&head](std::string_view name, std::string_view value) {
    head.append(name).append(": ");
    for (char c : value) head += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    head += "\r\n";
  };
  if (!reply.type.empty()) add("Content-Type", reply.type);
  if (framing == Framing::kChunked) add("Transfer-Encoding", "chunked");
  // 204 and 304 have no body and may not say how long it is.
  if (framing == Framing::kLength && reply.status != 204 && reply.status != 304)
    add("Content-Length", fmt::to_string(length));
  add("Connection", keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : reply.headers) add(name, value);
  return head += "\r\n";
}

}  // namespace juno::server
