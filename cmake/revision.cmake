# Writes revision.cc (src/api/revision.h) at each build, only where something changed:  cmake -Dsource=… -Dto=… -P …
# Only what the program is made of counts; a change of a test leaves the program the same.
set(parts src cmake CMakeLists.txt models)

# By content, so that it is the same in a checkout and in an archive of it.
file(GLOB_RECURSE files RELATIVE ${source} ${source}/src/* ${source}/cmake/*.cmake ${source}/models/*)
list(APPEND files CMakeLists.txt)
list(SORT files)
set(sums "")
foreach(file IN LISTS files)
  file(SHA256 ${source}/${file} sum)
  string(APPEND sums "${sum} ${file}\n")
endforeach()
string(SHA256 sources "${sums}")

# An archive made by git names its commit in commit.txt.
file(STRINGS ${source}/cmake/commit.txt commit)
set(changes "")
if(commit MATCHES "Format")
  execute_process(COMMAND git -C ${source} rev-parse HEAD OUTPUT_VARIABLE commit ERROR_QUIET RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0)
    execute_process(COMMAND git -C ${source} status --porcelain --untracked-files=all -- ${parts}
                    OUTPUT_VARIABLE changed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(changed)
      set(changes ${sources})
    endif()
  else()
    set(commit "unknown")
  endif()
endif()
set(text "// SPDX-License-Identifier: Apache-2.0
// Written by cmake/revision.cmake.
#include \"api/revision.h\"

namespace juno::api {

const Revision& revision() {
  static constexpr Revision known{\"${commit}\", \"${sources}\", \"${changes}\"};
  return known;
}

}  // namespace juno::api
")
set(old "")
if(EXISTS ${to})
  file(READ ${to} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${to} "${text}")
endif()
