# The two vendors of the GPU kernels: the host, always there, and CUDA, as far as this build has kernels for it.
file(GLOB vendors CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/host/*.cc ${CMAKE_CURRENT_LIST_DIR}/cuda/*.cc)
target_sources(juno_backend_gpu PRIVATE ${vendors})
# Fibres leave and enter each other's stacks by longjmp, which a fortified C library takes for an attack.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/host/block.cc PROPERTIES
  COMPILE_OPTIONS "-U_FORTIFY_SOURCE" SKIP_PRECOMPILE_HEADERS ON)
if(JUNO_SANITIZE) # sanitizers know no fibres; no test runs these there
  file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/host/*kernels.cc)
  set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS "-O0;-fno-sanitize=all" SKIP_PRECOMPILE_HEADERS ON)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/cuda/kernels.cmake)
