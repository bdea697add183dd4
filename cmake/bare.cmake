# What JUNO_BARE builds with instead of installed libraries: headers, and GoogleTest from its sources. Needs the files of
# libfmt-dev, libexpected-dev, nlohmann-json3-dev and googletest, of whatever processor, below JUNO_BARE_ROOT. They are
# searched last, so that another processor's C library in the same folder does not come before the compiler's own.
set(JUNO_BARE_ROOT /usr CACHE PATH "Where include/fmt, include/tl, include/nlohmann and src/googletest are")
foreach(library IN ITEMS fmt::fmt nlohmann_json::nlohmann_json)
  add_library(${library} INTERFACE IMPORTED GLOBAL)
  target_compile_options(${library} INTERFACE -idirafter${JUNO_BARE_ROOT}/include)
  target_compile_definitions(${library} INTERFACE FMT_HEADER_ONLY)
endforeach()

set(googletest ${JUNO_BARE_ROOT}/src/googletest/googletest)
add_library(juno_gtest STATIC ${googletest}/src/gtest-all.cc ${googletest}/src/gtest_main.cc)
target_include_directories(juno_gtest SYSTEM PUBLIC ${googletest}/include PRIVATE ${googletest})
target_link_libraries(juno_gtest PUBLIC Threads::Threads)
add_library(GTest::gtest_main ALIAS juno_gtest)
