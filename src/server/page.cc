// SPDX-License-Identifier: Apache-2.0
#include "server/page.h"

namespace juno::server {
namespace {

// Nothing inline, nothing from elsewhere, in nobody's frame; markup only through the library that cleans it.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types dompurify";

bool is_known(const HttpRequest& request, const PageFile& file) {
  const auto known = request.header("if-none-match");
  return known && known->find(file.etag) != std::string_view::npos;
}

void serve(const PageFile& file, Exchange& exchange) {
  HttpReply reply;
  reply.type = file.type;
  reply.headers = {{"Content-Security-Policy", kPolicy},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cache-Control", "no-cache"},
                   {"ETag", file.etag}};
  if (is_known(exchange.request(), file)) reply.status = 304;
  else reply.body = file.bytes();
  exchange.reply(std::move(reply));
}

}  // namespace

std::vector<Route> page_routes() {
  std::vector<Route> routes;
  for (const PageFile& file : page_files())
    routes.push_back({"GET", file.path, [&file](const std::shared_ptr<Exchange>& e) { serve(file, *e); }});
  return routes;
}

}  // namespace juno::server
