// SPDX-License-Identifier: Apache-2.0
// A loaded model: the file, its configuration, its architecture with the weights in place.
#pragma once
#include <memory>

#include "gguf/reader.h"
#include "model/architecture.h"
#include "model/loader.h"
#include "ops/executor.h"

namespace juno::model {

// Layers [first, last) and what runs them. The stages of a model follow each other, hold all its layers and
// have an executor each; the first also embeds, the last also gives the logits.
struct Stage {
  ops::Executor* ops = nullptr;
  int first = 0, last = 0;
};

// Not outlived by the devices it was loaded for.
struct Model {
  gguf::Reader file;  // weights may alias its mapping
  Config config;
  DeviceMemory memory;
  std::unique_ptr<Architecture> architecture;
};

// The device-independent part of loading: architecture known, keys and tensors all there and well shaped;
// reads no weight. Warns of tensors and keys that nothing asked for. -> the configuration.
Result<Config> check_model(const gguf::Reader& file, int64_t context, const Log& log);

// context: positions the engine is opened with; 0 takes the file's own. Reads no weight before check_model
// passed.
Result<Model> load_model(gguf::Reader file, int64_t context, ops::Device& device, const Log& log);

// The same, each layer on its device.
Result<Model> load_model(gguf::Reader file, int64_t context, std::vector<ops::Device*> layers,
                         const Log& log);

// The plain conductor: one whole forward pass. -> logits [outputs, vocab] or, with batch.hidden, what the
// head would read [outputs, dim]; valid until the next begin().
Tensor forward(const Architecture& model, Ops& op, const Batch& batch);

// The conductor of several devices: one stage, whose batch lies on its device. The x of the stage before it
// finds at the executor's entrance(). -> x [tokens, dim] or, of the last, the same as above.
Tensor forward(const Model& model, const Stage& stage, const Batch& batch);

}  // namespace juno::model
