// SPDX-License-Identifier: Apache-2.0
#include "server/openapi.h"

#include "base/version.h"
#include "server/anthropic/tables.h"
#include "server/inference.h"
#include "server/openai/tables.h"

namespace juno::server {
namespace {

Json schema_of(const Forms& forms);

Json whole_number(int64_t least, int64_t most) {
  Json out = {{"type", "integer"}};
  if (least != INT64_MIN) out["minimum"] = least;
  if (most != INT64_MAX) out["maximum"] = most;
  return out;
}

Json number_of(const Form& form) {
  Json out = {{"type", "number"}};
  out[form.open_low ? "exclusiveMinimum" : "minimum"] = form.low;
  out["maximum"] = form.high;
  return out;
}

// Bytes are at least as many as characters, so a limit of bytes is one of characters too.
Json string_of(const Form& form) {
  if (!form.words.empty()) return {{"type", "string"}, {"enum", form.words}};
  Json out = {{"type", "string"}};
  if (form.least > 0) out["minLength"] = form.least;
  if (form.most != Form::kMost) out["maxLength"] = form.most;
  if (form.chars == Chars::kName) out["pattern"] = "^[A-Za-z0-9_-]+$";
  if (form.chars == Chars::kSession) out["pattern"] = "^[A-Za-z0-9._:-]+$";
  return out;
}

Json array_of(const Form& form) {
  Json out = {{"type", "array"}, {"items", schema_of(form.items)}};
  if (form.least > 0) out["minItems"] = form.least;
  if (form.most != Form::kMost) out["maxItems"] = form.most;
  return out;
}

Json map_of(const Form& form) {
  Json out = {{"type", "object"}};
  if (!form.values.empty()) out["additionalProperties"] = schema_of(form.values);
  if (form.most != Form::kMost) out["maxProperties"] = form.most;
  if (form.longest_key != Form::kMost) out["propertyNames"] = {{"maxLength", form.longest_key}};
  return out;
}

Json any_of(Json schemas) { return schemas.size() == 1 ? schemas[0] : Json{{"anyOf", std::move(schemas)}}; }

Json property_of(const Field& field) {
  Json out;
  if (field.stand == Field::Stand::kUnsupported) {
    out = {{"type", "null"}};
  } else if (field.stand == Field::Stand::kNoOp) {
    Json values = field.only;
    values.push_back(nullptr);
    out = {{"enum", std::move(values)}};
  } else if (field.required) {
    out = schema_of(field.forms);
  } else {
    Json schemas = Json::array({schema_of(field.forms), Json{{"type", "null"}}});
    out = {{"anyOf", std::move(schemas)}};
  }
  std::string about = field.about;
  if (!field.fallback.empty()) about += (about.empty() ? "default: " : "; default: ") + field.fallback;
  if (!about.empty()) out["description"] = about;
  return out;
}

void add_fields(Json& schema, const Fields& fields) {
  for (const Field& field : fields) {
    if (field.stand == Field::Stand::kElsewhere) continue;
    schema["properties"][field.name] = property_of(field);
    if (field.required) schema["required"].push_back(field.name);
  }
}

Json closed_object(const Fields& fields) {
  Json out = {{"type", "object"}, {"properties", Json::object()}};
  add_fields(out, fields);
  out["additionalProperties"] = false;
  return out;
}

Json object_of(const Form& form) {
  if (!form.fields) return map_of(form);
  if (form.variants.empty()) return closed_object(*form.fields);
  Json all = Json::array();
  for (const Form::Variant& variant : form.variants) {
    Json one = closed_object(*form.fields);
    add_fields(one, *variant.fields);
    one["properties"][form.selector] = {{"const", variant.word}};
    all.push_back(std::move(one));
  }
  return any_of(std::move(all));
}

Json schema_of(const Forms& forms) {
  Json all = Json::array();
  for (const Form& form : forms) {
    switch (form.kind) {
      case Kind::kBoolean:
        all.push_back({{"type", "boolean"}});
        break;
      case Kind::kInteger:
        all.push_back(whole_number(form.least, form.most));
        break;
      case Kind::kNumber:
        all.push_back(number_of(form));
        break;
      case Kind::kString:
        all.push_back(string_of(form));
        break;
      case Kind::kArray:
        all.push_back(array_of(form));
        break;
      case Kind::kObject:
        all.push_back(object_of(form));
        break;
    }
  }
  return all.empty() ? Json::object() : any_of(std::move(all));
}

Json reply_of(const char* about, const char* type, Json schema) {
  return {{"description", about}, {"content", {{type, {{"schema", std::move(schema)}}}}}};
}

Json reference(const std::string& to) { return {{"$ref", "#/components/" + to}}; }

struct Status {
  const char* code;
  const char* name;  // in components
  const char* about;
  bool of_bodies = false;  // only where there is a body
};
constexpr Status kStatuses[] = {
    {"400", "BadRequest", "The request is wrong: param names the field.", true},
    {"401", "NoKey", "The key is missing or wrong."},
    {"403", "ForeignOrigin", "A Host or Origin that may not use this server."},
    {"404", "NotFound", "There is no such model, session or URL."},
    {"405", "WrongMethod", "Allow names the methods of this path."},
    {"408", "TooSlow", "The request itself came too slowly.", true},
    {"413", "TooLarge", "The body is too large.", true},
    {"415", "WrongType", "The body is no JSON in UTF-8.", true},
    {"429", "TooMany", "The queue is full: Retry-After says when to come back.", true},
    {"431", "HeadersTooLarge", "The headers are too large."},
    {"500", "Defect", "A defect of the server."},
    {"503", "Later", "The server is loading a model, overloaded or ending: see Retry-After."},
};

Json operation_of(const Described& route, const std::string& path) {
  Json out = {{"operationId", std::string(route.method) + path}, {"summary", route.about}};
  for (size_t at = 0; (at = path.find('{', at)) != path.npos; ++at)
    out["parameters"].push_back({{"name", path.substr(at + 1, path.find('}', at) - at - 1)},
                                 {"in", "path"},
                                 {"required", true},
                                 {"schema", {{"type", "string"}, {"minLength", 1}}}});
  if (route.fields) {
    Json content = {{"application/json", {{"schema", closed_object(route.fields())}}}};
    out["requestBody"] = {{"required", true}, {"content", std::move(content)}};
  }
  Json& replies = out["responses"];
  const bool json = std::string_view(route.type) == "application/json";
  replies["200"] = reply_of("Done.", route.type, json ? Json{{"type", "object"}} : Json{{"type", "string"}});
  if (route.streams) replies["200"]["content"]["text/event-stream"] = {{"schema", {{"type", "string"}}}};
  const bool open = path == "/health";
  for (const Status& status : kStatuses)
    if ((route.fields || !status.of_bodies) && !(open && std::string_view(status.code) == "401"))
      replies[status.code] = reference("responses/" + std::string(status.name));
  if (open) out["security"] = Json::array();
  return out;
}

Json components() {
  const Json error = {
      {"type", "object"},
      {"properties",
       {{"message", {{"type", "string"}}},
        {"type", {{"type", "string"}}},
        {"param", {{"type", Json::array({"string", "null"})}}},
        {"code", {{"type", "string"}}}}},
      {"required", Json::array({"type", "message"})},
  };
  Json out;
  out["schemas"]["Error"] = {
      {"description", "Below /v1/messages: type, error.type, error.message and request_id."},
      {"type", "object"},
      {"properties",
       {{"error", error}, {"type", {{"const", "error"}}}, {"request_id", {{"type", "string"}}}}},
      {"required", Json::array({"error"})}};
  for (const Status& status : kStatuses)
    out["responses"][status.name] = reply_of(status.about, "application/json", reference("schemas/Error"));
  out["securitySchemes"] = {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
                            {"key", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}};
  return out;
}

}  // namespace

// THE LIST, one line a route.
const std::vector<Described>& described_routes() {
  static const std::vector<Described> routes = {
      {"GET", "/", "The page: chat and dashboard", nullptr, false, "text/html"},
      {"GET", "/page/{file}", "A file of the page", nullptr, false, "application/octet-stream"},
      {"GET", "/health", "Whether it works, and with what; asks for no key, waits for nothing"},
      {"GET", "/metrics", "Figures for Prometheus", nullptr, false, "text/plain"},
      {"GET", "/props", "How the server was started, and its models"},
      {"GET", "/openapi.json", "This description"},
      {"GET", "/v1/sessions",
       "The sessions of this key: their model, the tokens kept for them, how long they idle"},
      {"DELETE", "/v1/sessions/{id}", "End a session of this key"},
      {"POST", "/v1/chat/completions", "A reply to a conversation", chat_fields, true},
      {"POST", "/v1/completions", "What follows texts", completion_fields, true},
      {"POST", "/v1/embeddings", "Vectors of texts", embedding_fields},
      {"POST", "/v1/responses", "A reply to items", response_fields, true},
      {"POST", "/v1/messages", "A reply to turns, as Anthropic's clients ask for it", message_fields, true},
      {"POST", "/v1/messages/count_tokens", "How many tokens turns are", count_tokens_fields},
      {"POST", "/v1/inference", "A text for a text or a conversation", inference_fields},
      {"POST", "/v1/inference/stream", "The same as events", inference_fields, true, "text/event-stream"},
      {"GET", "/v1/models", "All models"},
      {"GET", "/v1/models/{id*}", "One model"},
      {"POST", "/v1/tokenize", "Tokens of a text", tokenize_fields},
      {"POST", "/v1/detokenize", "The text of tokens", detokenize_fields},
      {"POST", "/v1/apply-template", "The prompt of a conversation", apply_template_fields},
      {"POST", "/tokenize", "The same as /v1/tokenize", tokenize_fields},
      {"POST", "/detokenize", "The same as /v1/detokenize", detokenize_fields},
      {"POST", "/apply-template", "The same as /v1/apply-template", apply_template_fields},
  };
  return routes;
}

Json openapi_json() {
  Json out = {{"openapi", "3.1.0"},
              {"info",
               {{"title", "Juno"},
                {"version", kVersion},
                {"summary", "Language models behind the APIs of OpenAI and Anthropic"},
                {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}}};
  out["security"] =
      Json::array({Json{{"bearer", Json::array()}}, Json{{"key", Json::array()}}, Json::object()});
  for (const Described& route : described_routes()) {
    std::string path = route.path;
    if (const size_t star = path.find("*}"); star != path.npos) path.erase(star, 1);
    const std::string method = route.method;
    const char* word = method == "GET" ? "get" : method == "POST" ? "post" : "delete";
    out["paths"][path][word] = operation_of(route, path);
  }
  out["components"] = components();
  return out;
}

void openapi(App&, const std::shared_ptr<Exchange>& exchange) {
  static const std::string text = to_text(openapi_json());
  exchange->reply({.body = text});
}

}  // namespace juno::server
