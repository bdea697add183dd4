// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_model.h"

// The file's bytes, page-aligned in the read-only part of the program: mapped like a file, never copied.
asm(".section .rodata\n"
    ".balign 4096\n"
    "juno_demo_model_begin:\n"
    ".incbin \"" JUNO_DEMO_MODEL
    "\"\n"
    "juno_demo_model_end:\n"
    ".byte 0\n"
    ".text\n");
extern "C" const uint8_t juno_demo_model_begin[], juno_demo_model_end[];

namespace juno::cli {

std::span<const uint8_t> demo_model() { return {juno_demo_model_begin, juno_demo_model_end}; }

}  // namespace juno::cli
