// SPDX-License-Identifier: Apache-2.0
// THE LIST of architectures. To add one: a file with its make_…, and its line in each half of this page.
#include "model/architecture.h"

namespace juno::model {

using Made = std::unique_ptr<Architecture>;
Made make_gemma(Loader&);
Made make_gemma2(Loader&);
Made make_gemma3(Loader&);
Made make_granite(Loader&);
Made make_llama(Loader&);
Made make_phi3(Loader&);
Made make_qwen2(Loader&);
Made make_qwen3(Loader&);
Made make_smollm3(Loader&);

std::span<const Entry> architectures() {
  static constexpr Entry kList[] = {
      {"gemma", make_gemma},         //
      {"gemma2", make_gemma2},       //
      {"gemma3", make_gemma3},       //
      {"granite", make_granite},     //
      {"granitemoe", make_granite},  // Mlp loads a mixture where the file has one
      {"llama", make_llama},         // also Mistral, Mixtral
      {"phi3", make_phi3},           // also Phi-4-mini
      {"qwen2", make_qwen2},         //
      {"qwen3", make_qwen3},         //
      {"qwen3moe", make_qwen3},      //
      {"smollm3", make_smollm3},     //
  };
  return kList;
}

}  // namespace juno::model
