// SPDX-License-Identifier: Apache-2.0
// Which state of the sources this program was built from (cmake/revision.cmake).
#pragma once

namespace juno::api {

struct Revision {
  const char* commit;   // git's name of it; "unknown" outside a repository
  const char* sources;  // SHA-256 of what the program is made of, as it was built
  const char* changes;  // the same where it was not as committed, else ""
};

const Revision& revision();

}  // namespace juno::api
