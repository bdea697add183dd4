// SPDX-License-Identifier: Apache-2.0
// What kind of file this is, told by its content and never by its name; and the GGUF entry inside a ZIP file.
#pragma once
#include <string>

#include "base/log.h"
#include "gguf/image.h"

namespace juno::gguf {

// Narrows the image to the stored .gguf entry when it is a ZIP file (an executable in front of it does no
// harm). Throws when there is no GGUF in it; what else it is (a pickle, safetensors) is named, never opened
// further.
void find_gguf(Image& image, const Log& log);

// Throws when the image is a pickle, or a ZIP file as PyTorch writes around one.
void refuse_pickle(const Image& image);

}  // namespace juno::gguf
