// SPDX-License-Identifier: Apache-2.0
// Launches one after another, as a device runs them: the first blocks of each begin while those before it
// have not, and go as far as they do without waiting for them.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "backend/gpu/host/block.h"

namespace juno::gpu::host {

class Stream {
 public:
  // Both throw Error, also of launches before; what is left of these is forgotten then.
  void launch(Body body, const Launch& launch, const Weather& weather);
  void finish();

 private:
  struct Grid {
    Body body;
    Launch launch;
    Weather weather;
    std::vector<std::unique_ptr<Block>> begun;  // its first blocks
  };

  void begin(Grid& grid);
  void finish(Grid& grid);
  template <class Action>
  void guarded(Action&& action);

  std::deque<std::unique_ptr<Grid>> grids_;
};

}  // namespace juno::gpu::host
