// SPDX-License-Identifier: Apache-2.0
#include "api/prompt.h"

#include <nlohmann/json.hpp>

#include "api/named.h"
#include "api/text.h"
#include "gguf/reader.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace juno::api {
namespace {

using tokenizer::ChatTemplate;
constexpr const char* kKey = "tokenizer.chat_template";

std::optional<std::string> text_of(const tokenizer::Tokenizer& tokenizer, std::optional<int32_t> id) {
  if (!id) return std::nullopt;
  return std::string(tokenizer.piece(*id));
}

}  // namespace

std::vector<int32_t> begun(std::vector<int32_t> ids, const tokenizer::Tokenizer& tokenizer) {
  const auto bos = tokenizer.special().bos;
  if (tokenizer.adds_bos() && (ids.empty() || ids[0] != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

Prompt::Prompt(const gguf::Reader& file, const tokenizer::Tokenizer& tokenizer, const std::string& given,
               const Log& log)
    : tokenizer_(tokenizer), source_(given.empty() ? file.name() : given) {
  if (!given.empty()) {
    template_ =
        std::make_unique<ChatTemplate>(take(ChatTemplate::parse(take(template_source(given)), given)));
    return;
  }
  const Result<ChatTemplate> own = guard([&] {
    const auto source = file.metadata().get<std::string_view>(kKey);
    if (!source) {
      fail(Code::kConfig, "[api] {} has no {}: give one with --chat-template, a file or one of {}",
           file.name(), kKey, tokenizer::builtin_names());
    }
    return take(named(ChatTemplate::parse(*source, kKey), source_));
  });
  if (own) {
    template_ = std::make_unique<ChatTemplate>(*own);
  } else {
    fault_ = own.error();
    if (fault_->code != Code::kConfig)
      log.warn("{}; this model cannot chat without --chat-template", fault_->message);
  }
}

Prompt::~Prompt() = default;

std::vector<int32_t> Prompt::render(std::span<const Message> messages) const {
  if (!template_) throw *fault_;
  auto list = nlohmann::ordered_json::array();
  for (const Message& m : messages) list.push_back({{"role", m.role}, {"content", m.content}});
  const auto& special = tokenizer_.special();
  const auto rendered = take(named(template_->render({.messages = &list,
                                                      .bos_token = text_of(tokenizer_, special.bos),
                                                      .eos_token = text_of(tokenizer_, special.eos),
                                                      .unk_token = text_of(tokenizer_, special.unk),
                                                      .pad_token = text_of(tokenizer_, special.pad)}),
                                   source_));
  return begun(tokenizer_.encode_segments(rendered.segments), tokenizer_);
}

}  // namespace juno::api
