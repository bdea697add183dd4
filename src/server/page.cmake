# Puts the files of web/dist into juno_server. They are committed, made by web/build.js; the build needs no node.
set(web ${CMAKE_SOURCE_DIR}/web)
# Where it is served, its file, its type.
set(page_list
  "/|index.html|text/html\; charset=utf-8"
  "/page/app.js|app.js|text/javascript\; charset=utf-8"
  "/page/style.css|style.css|text/css\; charset=utf-8"
  "/page/icon.svg|icon.svg|image/svg+xml"
  "/page/licences.txt|licences.txt|text/plain\; charset=utf-8")

# The same sum as web/build.js writes: a dist that is older than its sources must not go unseen.
file(GLOB sources CONFIGURE_DEPENDS ${web}/build.js ${web}/package.json ${web}/package-lock.json ${web}/src/*)
list(SORT sources)
set(sums "")
foreach(source IN LISTS sources)
  file(SHA256 ${source} sum)
  file(RELATIVE_PATH name ${web} ${source})
  string(APPEND sums "${sum} ${name}\n")
endforeach()
string(SHA256 sum "${sums}")
file(STRINGS ${web}/dist/sources.txt made_from)
if(NOT made_from STREQUAL sum)
  message(FATAL_ERROR "web/dist was made from other sources than web/src: cd web && npm ci && npm run build")
endif()

set(blobs "")
set(names "")
set(rows "")
set(files "")
foreach(entry IN LISTS page_list)
  string(REPLACE "|" ";" entry "${entry}")
  list(GET entry 0 path)
  list(GET entry 1 file)
  string(REGEX REPLACE "^[^;]*;[^;]*;" "" type "${entry}")
  file(SHA256 ${web}/dist/${file} etag)
  string(MAKE_C_IDENTIFIER ${file} name)
  string(APPEND blobs "    \"juno_page_${name}_begin:\\n\"\n    \".incbin \\\"${web}/dist/${file}\\\"\\n\"\n    \"juno_page_${name}_end:\\n\"\n")
  list(APPEND names "juno_page_${name}_begin[]" "juno_page_${name}_end[]")
  string(APPEND rows "      {\"${path}\", \"${type}\", \"\\\"${etag}\\\"\", juno_page_${name}_begin, juno_page_${name}_end},\n")
  list(APPEND files ${web}/dist/${file})
endforeach()
string(JOIN ", " names ${names})
set(generated ${CMAKE_BINARY_DIR}/page_files.cc)
file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [[
// SPDX-License-Identifier: Apache-2.0
// Written by page.cmake.
#include "server/page.h"

asm(".section .rodata\n"
@blobs@    ".byte 0\n"
    ".text\n");
extern "C" const char @names@;

namespace juno::server {

std::span<const PageFile> page_files() {
  static constexpr PageFile kFiles[] = {
@rows@  };
  return kFiles;
}

}  // namespace juno::server
]])
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources} ${web}/dist/sources.txt ${files})
set_source_files_properties(${generated} PROPERTIES OBJECT_DEPENDS "${files}")
target_sources(juno_server PRIVATE ${generated})
