// SPDX-License-Identifier: Apache-2.0
#include "server/page.h"

#include <algorithm>

#include "server/errors.h"
#include "server/http.h"

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

}  // namespace

void page(App&, const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const auto file = std::ranges::find(page_files(), request.path, &PageFile::path);
  if (file == page_files().end())
    return exchange->reply(
        error_reply(404, kInvalidRequest, "unknown_url", {}, "There is no " + request.path + "."));
  HttpReply reply{.type = file->type,
                  .headers = {{"Content-Security-Policy", kPolicy},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cache-Control", "no-cache"},
                              {"ETag", std::string(file->etag)}}};
  if (is_known(request, *file)) reply.status = 304;
  else reply.body.assign(file->begin, file->end);
  exchange->reply(std::move(reply));
}

}  // namespace juno::server
