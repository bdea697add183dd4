// SPDX-License-Identifier: Apache-2.0
// A chat with a server, over /v1/chat/completions and /v1/completions.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "cli/http_client.h"
#include "cli/partner.h"

namespace juno::cli {

class ServerPartner final : public Partner {
 public:
  // model "": the first that the server names. kUsage names those there are when it has none of that name.
  ServerPartner(ServerAddress address, const std::string& model);

  std::string about() const override;
  void check(const api::Generation& how) override;
  Answer answer(std::span<const api::Message> messages, const api::Generation& how) override;
  Answer go_on(const std::string& text, const api::Generation& how) override;
  void show_stats() override;

 private:
  Answer stream(const std::string& path, nlohmann::ordered_json request, const api::Generation& how);

  HttpClient client_;
  std::string model_;
  int64_t prompt_tokens_ = 0, cached_tokens_ = 0, new_tokens_ = 0;
};

}  // namespace juno::cli
