// SPDX-License-Identifier: Apache-2.0
// A chat with a model that this process has opened for itself.
#pragma once
#include "cli/partner.h"

namespace juno::cli {

class SessionPartner final : public Partner {
 public:
  explicit SessionPartner(api::Session& session) : session_(session) {}

  std::string about() const override;
  void check(const api::Generation& how) override { take(session_.check(how)); }
  Answer answer(std::span<const api::Message> messages, const api::Generation& how) override;
  Answer go_on(const std::string& text, const api::Generation& how) override;
  void show_stats() override;

 private:
  api::Session& session_;
};

}  // namespace juno::cli
