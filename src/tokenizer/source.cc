// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/source.h"

#include "gguf/metadata.h"

namespace juno::tokenizer {

Result<VocabularySource> read_vocabulary(const gguf::Metadata& metadata) {
  return guard([&] {
    using Texts = std::vector<std::string_view>;
    const auto key = [](std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); };
    const auto id = [&](std::string_view name) {
      return metadata.get<uint32_t>(fmt::format("tokenizer.ggml.{}_token_id", name));
    };
    VocabularySource source;
    const gguf::Value* name = metadata.find("general.name");
    if (name) source.name = name->as<std::string>().value_or("");
    source.model = metadata.require<std::string>(key("model"));
    source.pre = metadata.get<std::string>(key("pre"));
    source.tokens = metadata.require<Texts>(key("tokens"));
    source.types = metadata.get<std::vector<int32_t>>(key("token_type"));
    source.scores = metadata.get<std::vector<float>>(key("scores"));
    source.merges = metadata.get<Texts>(key("merges"));
    source.bos = id("bos");
    source.eos = id("eos");
    source.eot = id("eot");
    source.eom = id("eom");
    source.unk = id("unknown");
    source.pad = id("padding");
    source.add_bos = metadata.get<bool>(key("add_bos_token"));
    source.add_eos = metadata.get<bool>(key("add_eos_token"));
    source.add_space_prefix = metadata.get<bool>(key("add_space_prefix"));
    source.remove_extra_whitespaces = metadata.get<bool>(key("remove_extra_whitespaces"));
    return source;
  });
}

}  // namespace juno::tokenizer
