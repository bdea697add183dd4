// SPDX-License-Identifier: Apache-2.0
// The web page: files of web/dist that lie in the program, served with a policy that lets them fetch nothing
// from elsewhere.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace juno::server {

struct PageFile {
  const char* path;
  const char* type;
  const char* etag;  // with its quotes
  const char* begin;
  const char* end;

  std::string_view bytes() const { return {begin, end}; }
};

// In page_files.cc, which page.cmake writes.
std::span<const PageFile> page_files();

// GET / and GET /page/…, behind the key like every other route.
std::vector<Route> page_routes();

}  // namespace juno::server
