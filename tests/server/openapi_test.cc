// SPDX-License-Identifier: Apache-2.0
#include "server/openapi.h"

#include <gtest/gtest.h>

#include <set>

#include "server/routes.h"

namespace juno::server {
namespace {

// Handlers are never called, so the models need not exist.
std::set<std::string> served() {
  alignas(16) static char nothing[16];
  Metrics metrics;
  App app{reinterpret_cast<api::Models&>(nothing), metrics};
  std::set<std::string> out;
  for (const Route& route : routes(app)) out.insert(route.method + " " + route.path);
  return out;
}

// Each schema below `value`, with where it stands.
void walk(const Json& value, const std::string& at,
          const std::function<void(const Json&, std::string)>& see) {
  see(value, at);
  if (!value.is_structured()) return;
  for (const auto& [key, item] : value.items()) walk(item, at + "/" + key, see);
}

}  // namespace

TEST(Openapi, NamesEveryRouteThatIsServedAndNoOther) {
  std::set<std::string> described;
  for (const Described& route : described_routes())
    EXPECT_TRUE(described.insert(std::string(route.method) + " " + route.path).second) << route.path;
  EXPECT_EQ(described, served());
  const Json document = openapi_json();
  size_t operations = 0;
  for (const auto& [path, item] : document["paths"].items()) operations += item.size();
  EXPECT_EQ(operations, described.size());
}

TEST(Openapi, SaysOfEveryFieldWhatTheTablesSay) {
  const Json document = openapi_json();
  const Json& chat = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
                             ["application/json"]["schema"];
  EXPECT_EQ(chat["required"], Json::parse(R"(["model","messages"])"));
  EXPECT_EQ(chat["additionalProperties"], false);
  const Json temperature = {{"type", "number"}, {"minimum", 0.0}, {"maximum", 2.0}};
  EXPECT_EQ(chat["properties"]["temperature"]["anyOf"][0], temperature);
  EXPECT_EQ(chat["properties"]["store"]["enum"], Json::parse("[false,null]"));
  EXPECT_EQ(chat["properties"]["chat_template"]["type"], "null");
  EXPECT_TRUE(chat["properties"]["x_juno_priority"]["anyOf"][0].contains("enum"));
  EXPECT_FALSE(document["paths"]["/v1/completions"]["post"]["requestBody"]["content"]["application/json"]
                       ["schema"]["properties"]
                           .contains("messages"));
}

TEST(Openapi, HasErrorsAndNoReferenceToNothing) {
  const Json document = openapi_json();
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, operation] : item.items()) {
      EXPECT_TRUE(operation["responses"].contains("500")) << path;
      EXPECT_EQ(operation["responses"].contains("400"), method == "post") << path;
    }
  }
  walk(document, "", [&](const Json& value, const std::string& at) {
    if (!value.is_object() || !value.contains("$ref")) return;
    const std::string to = value["$ref"].get<std::string>().substr(1);
    EXPECT_TRUE(document.contains(Json::json_pointer(to))) << at << " " << to;
  });
}

}  // namespace juno::server
