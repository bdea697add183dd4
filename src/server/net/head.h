// SPDX-License-Identifier: Apache-2.0
// The small grammar of HTTP heads that the library leaves to us: targets, ids, and the head of a reply.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "server/http.h"

namespace juno::server {

// "/a%20b?c" -> path "/a b", query "c". False for what is no path, or is encoded wrongly, or holds a NUL.
bool split_target(std::string_view target, HttpRequest& request);

// What lets two readers of a head disagree on what it asks, or where its body ends; "": nothing.
std::string head_fault(const Headers& headers);
// 1 to 128 visible ASCII characters.
bool is_request_id(std::string_view text);

enum class Framing : uint8_t { kLength, kChunked, kUntilClose };

// Status line and headers up to the empty line. length: of the body, with kLength. No value can add a line.
std::string reply_head(const HttpReply& reply, Framing framing, size_t length, bool keep_alive);

}  // namespace juno::server
