// SPDX-License-Identifier: Apache-2.0
// Which state of the sources this program was built from (cmake/revision.cmake).
#pragma once

namespace juno::api {

struct Revision {
  const char* commit;   // git's name of it; "unknown" outside a repository
  const char* sources;  // git's name of the folder src in that commit
  const char* changes;  // SHA-256 of what src and the build's own files held besides; "" for nothing
};

const Revision& revision();

}  // namespace juno::api
