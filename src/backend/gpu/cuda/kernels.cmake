# The CUDA kernels, compiled ahead of time and put into the program as bytes (image.h): PTX for sm_80, which the driver
# translates for any newer GPU, and machine code for sm_90a. JUNO_CUDA chooses:
#   ON    compile them; nvcc is needed
#   AUTO  take kernels.bin of this folder, which is committed, where it was made from these sources; else none
#   OFF   none
# tools/cuda_image makes kernels.bin anew.
set(here ${CMAKE_CURRENT_LIST_DIR})
set(work ${CMAKE_BINARY_DIR}/cuda)
file(MAKE_DIRECTORY ${work})

# What the kernels are made of. A change of any of it, white space aside, makes the committed image stale.
file(GLOB units CONFIGURE_DEPENDS ${here}/*.cu)
file(GLOB texts CONFIGURE_DEPENDS ${here}/../kernels/*.h ${here}/gpu.h ${here}/tiles.h ${CMAKE_SOURCE_DIR}/src/quant/*.h
     ${CMAKE_SOURCE_DIR}/src/base/portable.h ${CMAKE_SOURCE_DIR}/src/base/math.h ${CMAKE_SOURCE_DIR}/src/base/half.h
     ${CMAKE_SOURCE_DIR}/src/base/math_double.h ${CMAKE_SOURCE_DIR}/src/base/sin_cos.h)
set(sums "")
foreach(text IN LISTS units texts)
  file(READ ${text} content)
  string(REGEX REPLACE "[ \t\r\n\\\\]+" "" content "${content}")  # and the backslashes that go on with a macro
  string(SHA256 sum "${content}")
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${text})
  string(APPEND sums "${sum} ${name}\n")
endforeach()
string(SHA256 sources "${sums}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${units} ${texts} ${here}/kernels.txt)

set(missing "")
set(image ${here}/kernels.bin)
if(JUNO_CUDA STREQUAL "AUTO")
  # kernels.txt: the sources' hash, then the size of each fat binary.
  set(committed "")
  if(EXISTS ${here}/kernels.txt)
    file(STRINGS ${here}/kernels.txt committed)
  endif()
  list(POP_FRONT committed committed_sources)
  if(NOT committed_sources STREQUAL sources)
    set(missing "the committed CUDA kernels are older than their sources, and JUNO_CUDA=ON did not compile them")
  endif()
elseif(JUNO_CUDA)
  find_program(NVCC nvcc PATHS /usr/local/cuda/bin REQUIRED)
else()
  set(missing "CUDA was left out of this build (JUNO_CUDA=OFF)")
endif()

if(missing)
  message(STATUS "CUDA: none: ${missing}")
else()
  message(STATUS "CUDA: kernels of sources ${sources}")
endif()

set(generated ${work}/image.cc)
if(JUNO_CUDA AND NOT JUNO_CUDA STREQUAL "AUTO")
  # The numerics contract (docs/numerics.md §1): no contraction, no flushing, correctly rounded division and root.
  set(exact -fmad=false -ftz=false -prec-div=true -prec-sqrt=true)
  set(image ${work}/kernels.bin)
  set(binaries "")
  foreach(unit IN LISTS units)
    get_filename_component(name ${unit} NAME_WE)
    set(binary ${work}/${name}.fatbin)
    add_custom_command(OUTPUT ${binary}
      COMMAND ${NVCC} -std=c++20 -O3 ${exact} --expt-relaxed-constexpr -I${CMAKE_SOURCE_DIR}/src
              -gencode=arch=compute_80,code=compute_80 -gencode=arch=compute_90a,code=sm_90a
              --threads 2 --split-compile 4 --compress-mode=size -fatbin -MD -MF ${binary}.d -o ${binary} ${unit}
      DEPENDS ${unit} ${texts} DEPFILE ${binary}.d COMMENT "Compiling CUDA kernels ${name}" VERBATIM)
    list(APPEND binaries ${binary})
  endforeach()
  add_custom_command(OUTPUT ${image} ${generated}
    COMMAND ${CMAKE_COMMAND} "-Dbinaries=${binaries}" -Dimage=${image} -Dsources=${sources} -Dgenerated=${generated}
            -Dlist=${work}/kernels.txt -P ${here}/embed.cmake
    DEPENDS ${binaries} ${here}/embed.cmake COMMENT "Embedding CUDA kernels" VERBATIM)
else()
  set(binaries "")
  set(sizes ${committed})
  include(${here}/embed.cmake)
  if(NOT missing)
    set_source_files_properties(${generated} PROPERTIES OBJECT_DEPENDS ${image})
  endif()
endif()
target_sources(juno_backend_gpu PRIVATE ${generated})
