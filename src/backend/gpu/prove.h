// SPDX-License-Identifier: Apache-2.0
// One kernel whose answer is known, before a device is trusted with a model.
#pragma once
#include "ops/executor.h"

namespace juno::gpu {

// Runs a norm on the device and on the reference; fails with Code::kDevice, naming the device, when it cannot
// be run or a bit differs.
void prove(ops::Executor& op);

}  // namespace juno::gpu
