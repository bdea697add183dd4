# The two vendors of the GPU kernels: the host, always there, and CUDA, as far as this build has kernels for it.
file(GLOB vendors CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/host/*.cc ${CMAKE_CURRENT_LIST_DIR}/cuda/*.cc)
target_sources(juno_backend_gpu PRIVATE ${vendors})
include(${CMAKE_CURRENT_LIST_DIR}/cuda/kernels.cmake)
