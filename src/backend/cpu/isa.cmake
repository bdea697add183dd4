# One text of the kernels, vec/kernels.cc, compiled once for each instruction set. The list, the fastest first; vec/isa.cc asks
# the processor for each. AMX stands behind AVX-512 and i8mm behind NEON, for their bits are proven
# (evidence/cpu-isas-xeon-amx.json, qemu), their speed is not measured: they run where they are asked for.
# The flags change speed only: no result depends on them (docs/numerics.md §1).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(isas avx512 amx avxvnni avx2)
  set(flags_avx2 -mavx2 -mfma -mf16c)
  set(flags_avxvnni ${flags_avx2} -mavxvnni)
  set(flags_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c -mprefer-vector-width=512
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)  # GCC 12 warns of its own headers
  set(flags_amx ${flags_avx512} -mamx-tile -mamx-int8)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(isas neon i8mm)
  set(flags_neon -march=armv8.2-a+dotprod)
  set(flags_i8mm -march=armv8.2-a+dotprod+i8mm)
endif()
list(APPEND isas baseline)
if(JUNO_ISAS)
  list(FILTER isas INCLUDE REGEX "^(${JUNO_ISAS})$")
endif()
# UBSan on fully unrolled kernels would take minutes to compile, and with TSan a server would be too slow to be tried; the
# reference, whose bits they have, is under all sanitizers.
set(optimise -O3)
if(JUNO_SANITIZE STREQUAL "thread")
  set(optimise -O1 -fno-sanitize=thread)
elseif(JUNO_SANITIZE)
  set(optimise -O1 -fno-sanitize=undefined)
endif()
set_property(GLOBAL PROPERTY juno_isas ${isas})
foreach(isa IN LISTS isas)
  add_library(juno_cpu_${isa} OBJECT ${CMAKE_CURRENT_LIST_DIR}/vec/kernels.cc)
  target_include_directories(juno_cpu_${isa} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(juno_cpu_${isa} PRIVATE JUNO_ISA=${isa})
  target_compile_options(juno_cpu_${isa} PRIVATE -fno-math-errno -fno-trapping-math ${flags_${isa}}
    "$<$<CONFIG:Release,RelWithDebInfo>:${optimise}>")
  target_sources(juno_backend_cpu PRIVATE $<TARGET_OBJECTS:juno_cpu_${isa}>)
endforeach()
target_sources(juno_backend_cpu PRIVATE ${CMAKE_CURRENT_LIST_DIR}/vec/isa.cc)
list(TRANSFORM isas REPLACE "(.+)" "ISA(\\1)" OUTPUT_VARIABLE list)
list(JOIN list " " list)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/vec/isa.cc PROPERTIES COMPILE_DEFINITIONS "JUNO_ISA_LIST=${list}")
