# Tests of build/dev that run programs of build/asan (clang, ASan and UBSan), build/tsan (clang, TSan) and build/arm64 (64-bit
# Arm, under qemu).
set(asan_programs base_test quant_test gguf_test tokenizer_test ops_test model_test)
set(fuzzers gguf tokenizer chat_template)

# What those presets build for it.
if(JUNO_SANITIZE STREQUAL "thread")
  set(lent base_test faults)
elseif(JUNO_SANITIZE)
  set(lent ${asan_programs} faults)
  list(TRANSFORM fuzzers PREPEND fuzz_ OUTPUT_VARIABLE fuzz_programs)
  list(APPEND lent ${fuzz_programs})
endif()
foreach(program IN ITEMS juno LISTS lent)
  if(TARGET ${program})
    add_dependencies(for_tests ${program})
  endif()
endforeach()

# juno_test_from(BUILD NAME LABEL program argument...): a test whose program lies in build/BUILD.
function(juno_test_from build name label)
  add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/tools/from_build ${CMAKE_SOURCE_DIR}/build/${build} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 900 SKIP_RETURN_CODE 77)
endfunction()

foreach(program IN LISTS asan_programs)
  string(REPLACE _test "" room ${program})
  if(TARGET ${program})
    juno_test_from(asan asan.${program} sanitizer tests/${room}/${program})
  endif()
endforeach()
juno_test_from(tsan tsan.threads sanitizer tests/base/base_test --gtest_filter=ThreadPool.*:Recorder.*)

# Every kernel and whole models on 64-bit Arm. None of its sets may be missing: ctest does not see a whole program's skips.
set(qemu qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu max)
foreach(program IN ITEMS backend/cpu/backend_cpu_test isas/isas_test)
  get_filename_component(name ${program} NAME_WE)
  foreach(isa IN ITEMS neon i8mm)
    juno_test_from(arm64 arm64.${isa}.${name} bits tests/${program} ${qemu} {} --gtest_brief=1 --gtest_filter=*/${isa}*)
    set_property(TEST arm64.${isa}.${name} APPEND PROPERTY ENVIRONMENT JUNO_NEEDS_ISA=${isa})
  endforeach()
endforeach()

# 60 seconds of libFuzzer each. What it finds goes to build/dev/fuzz; what is worth keeping, to fuzz/corpus.
foreach(name IN LISTS fuzzers)
  if(EXISTS ${CMAKE_SOURCE_DIR}/fuzz/${name}.cc)
    set(found ${CMAKE_BINARY_DIR}/fuzz/${name})
    set(corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    file(MAKE_DIRECTORY ${found} ${corpus})
    juno_test_from(asan fuzz.${name} fuzz fuzz/fuzz_${name} -max_total_time=60 -timeout=10 -rss_limit_mb=2048
      -print_final_stats=1 -artifact_prefix=${found}/ ${found} ${corpus})
  endif()
endforeach()

# The program on damaged files and on its golden bits, from each build.
set(bad_files ${JUNO_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tools/run_bad_gguf.py)
set(same_bits ${JUNO_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tools/same_bits.py)
if(TARGET juno)
  add_test(NAME program.bad_files COMMAND ${bad_files} $<TARGET_FILE:juno> ${CMAKE_BINARY_DIR}/bad_files --measure)
  add_test(NAME program.same_bits COMMAND ${same_bits} $<TARGET_FILE:juno>)
  set_tests_properties(program.bad_files program.same_bits PROPERTIES LABELS program TIMEOUT 600)
  juno_test_from(asan asan.bad_files sanitizer juno ${bad_files} {} ${CMAKE_BINARY_DIR}/bad_files_asan)
  juno_test_from(asan asan.same_bits bits juno ${same_bits} {} --once)
endif()

# Each build reports what it must, also of a program whose end nobody looks at.
function(juno_reports build fault text)
  set(command ${CMAKE_SOURCE_DIR}/tests/tools/from_build ${CMAKE_SOURCE_DIR}/build/${build} tests/sanitizers/faults sh -c "{} ${fault}; true")
  add_test(NAME ${build}.reports_${fault} COMMAND ${CMAKE_SOURCE_DIR}/tests/tools/must_fail ${text} ${command})
  set_tests_properties(${build}.reports_${fault} PROPERTIES LABELS sanitizer SKIP_RETURN_CODE 77)
endfunction()
juno_reports(asan overflow "heap-buffer-overflow")
juno_reports(asan undefined "signed integer overflow")
juno_reports(asan leak "detected memory leaks")
juno_reports(tsan race "data race")

# The server under strain, and at its end: juno_server_tests_from(BUILD SCRIPT [REGEX]).
function(juno_server_tests_from build script)
  juno_functions(names ${CMAKE_CURRENT_SOURCE_DIR}/server/${script}.py)
  if(ARGN)
    list(FILTER names INCLUDE REGEX "${ARGN}")
  endif()
  foreach(name IN LISTS names)
    juno_test_from(${build} ${build}.server.${name} sanitizer juno env JUNO_PROGRAM={} JUNO_SANITIZER=${build}
      JUNO_SOURCE_DIR=${CMAKE_SOURCE_DIR} ${JUNO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/server/${script}.py test_${name})
  endforeach()
endfunction()
foreach(build IN ITEMS asan tsan)
  juno_server_tests_from(${build} load_test)
  juno_server_tests_from(${build} strain_test "C71|graceful|second_signal|grace_has")
  juno_server_tests_from(${build} contract_test "C71|C72|sessions")
endforeach()
# Bytes from strangers, which races have no part in.
juno_server_tests_from(asan contract_test "odd_|first_of_the_contract")
juno_server_tests_from(asan strain_test "C68")
juno_server_tests_from(asan openai_test "C20|C30|good_requests_are|C61")
