// SPDX-License-Identifier: Apache-2.0
// The web page: files of web/dist that lie in the program, served with a policy that lets them fetch nothing
// from elsewhere.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "server/app.h"

namespace juno::server {

struct PageFile {
  std::string_view path;
  const char* type;
  std::string_view etag;  // with its quotes
  const char* begin;
  const char* end;
};

// In page_files.cc, which page.cmake writes.
std::span<const PageFile> page_files();

// GET / and GET /page/{file}, behind the key like every other route.
void page(App& app, const std::shared_ptr<Exchange>& exchange);

}  // namespace juno::server
