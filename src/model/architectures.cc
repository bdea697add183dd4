// SPDX-License-Identifier: Apache-2.0
// THE LIST of architectures. To add one: its file, and its line here.
#include "model/architecture.h"

// clang-format off
#define JUNO_ARCHITECTURES(X)  \
  X(gemma, make_gemma)         \
  X(gemma2, make_gemma2)       \
  X(gemma3, make_gemma3)       \
  X(glm4, make_glm4)           \
  X(granite, make_granite)     \
  X(granitemoe, make_granite)  \
  X(llama, make_llama)         \
  X(olmo2, make_olmo2)         \
  X(phi3, make_phi3)           \
  X(qwen2, make_qwen2)         \
  X(qwen2moe, make_qwen2moe)   \
  X(qwen3, make_qwen3)         \
  X(qwen3moe, make_qwen3)      \
  X(smollm3, make_smollm3)
// clang-format on

namespace juno::model {

#define DECLARE(name, make) std::unique_ptr<Architecture> make(Loader&);
JUNO_ARCHITECTURES(DECLARE)
#undef DECLARE

std::span<const Entry> architectures() {
#define ENTRY(name, make) {#name, make},
  static constexpr Entry kList[] = {JUNO_ARCHITECTURES(ENTRY)};
#undef ENTRY
  return kList;
}

}  // namespace juno::model
