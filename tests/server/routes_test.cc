// SPDX-License-Identifier: Apache-2.0
#include "server/routes.h"

#include <gtest/gtest.h>

namespace juno::server {
namespace {

Router router() {
  std::vector<Route> routes;
  for (const auto& [method, path] : {std::pair{"GET", "/v1/models"},
                                     {"GET", "/v1/models/{id*}"},
                                     {"POST", "/v1/chat"},
                                     {"GET", "/v1/sessions/{id}"},
                                     {"DELETE", "/v1/sessions/{id}"},
                                     {"POST", "/v1/{a}/to/{b}"}})
    routes.push_back({.method = method, .path = path});
  return Router(std::move(routes));
}

TEST(Router, FindsARouteAndWhatStoodInItsPath) {
  const Router r = router();
  using Parameters = std::vector<std::string>;
  EXPECT_EQ(r.find("GET", "/v1/models").route->path, "/v1/models");
  EXPECT_EQ(r.find("GET", "/v1/models/a").parameters, Parameters{"a"});
  EXPECT_EQ(r.find("GET", "/v1/models/org/name").parameters, Parameters{"org/name"});
  EXPECT_EQ(r.find("DELETE", "/v1/sessions/x.y").parameters, Parameters{"x.y"});
  EXPECT_EQ(r.find("POST", "/v1/one/to/two").parameters, (Parameters{"one", "two"}));
}

TEST(Router, C64_APathIsThisOneOrNone) {
  const Router r = router();
  for (const char* path :
       {"", "/", "/v1", "/v1/models/", "/v1/modelsx", "/V1/models", "/v1//models", "/v1/sessions/",
        "/v1/sessions/a/b", "/v1/sessions/../models", "/v1/one/to/", "/v1/chat/../models"}) {
    const auto found = r.find("GET", path);
    EXPECT_EQ(found.route, nullptr) << path;
    EXPECT_EQ(found.allow, "") << path;
  }
}

TEST(Router, SaysWhichMethodsAPathHas) {
  const Router r = router();
  EXPECT_EQ(r.find("POST", "/v1/models").allow, "GET, HEAD");
  EXPECT_EQ(r.find("GET", "/v1/chat").allow, "POST");
  EXPECT_EQ(r.find("PUT", "/v1/sessions/a").allow, "GET, HEAD, DELETE");
}

}  // namespace
}  // namespace juno::server
