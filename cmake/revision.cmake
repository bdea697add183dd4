# Writes revision.cc (src/api/revision.h) at each build, only where something changed:  cmake -Dsource=… -Dto=… -P …
# Only what the program is made of counts; a change of a test leaves the program the same.
set(parts src cmake CMakeLists.txt models)
function(git out)
  execute_process(COMMAND git -C ${source} ${ARGN} OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    set(text "unknown")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()
git(commit rev-parse HEAD)
git(sources rev-parse HEAD:src)
git(status status --porcelain --untracked-files=all -- ${parts})
set(changes "")
if(status AND NOT commit STREQUAL "unknown")
  git(difference diff HEAD --binary -- ${parts})
  git(others ls-files --others --exclude-standard -- ${parts})
  set(sums "")
  string(REPLACE "\n" ";" others "${others}")
  foreach(file IN LISTS others)
    file(SHA256 ${source}/${file} sum)
    string(APPEND sums "${sum} ${file}\n")
  endforeach()
  string(SHA256 changes "${difference}\n${sums}")
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
