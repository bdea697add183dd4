# Writes `generated`, the source that holds the kernels. Two ways: with `binaries` (cmake -P, after nvcc) they are put
# together as `image` and described in `list`; without, `image` is there, with `sizes`, or `missing` says why not.
if(binaries)
  set(sizes "")
  foreach(binary IN LISTS binaries)
    file(SIZE ${binary} size)
    list(APPEND sizes ${size})
  endforeach()
  execute_process(COMMAND ${CMAKE_COMMAND} -E cat ${binaries} OUTPUT_FILE ${image} COMMAND_ERROR_IS_FATAL ANY)
  string(JOIN "\n" lines ${sources} ${sizes})
  file(WRITE ${list} "${lines}\n")
endif()

set(bytes "    \".byte 0\\n\"\n")
set(sum "")
if(NOT missing)
  set(bytes "    \".incbin \\\"${image}\\\"\\n\"\n")
  file(SHA256 ${image} sum)
endif()
string(JOIN ", " numbers ${sizes})
if(missing OR NOT sizes)
  set(numbers 0)
endif()
set(text "// SPDX-License-Identifier: Apache-2.0
// Written by embed.cmake.
#include \"backend/gpu/cuda/image.h\"

asm(\".section .rodata\\n\"
    \".balign 64\\n\"
    \"juno_cuda_kernels_begin:\\n\"
${bytes}    \"juno_cuda_kernels_end:\\n\"
    \".byte 0\\n\"
    \".text\\n\");
extern \"C\" const uint8_t juno_cuda_kernels_begin[], juno_cuda_kernels_end[];

namespace juno::gpu::cuda {

const KernelImage& kernel_image() {
  static constexpr uint32_t sizes[] = {${numbers}};
  static const KernelImage image{{juno_cuda_kernels_begin, juno_cuda_kernels_end}, sizes, \"${sum}\",
                                 \"${sources}\", \"${missing}\"};
  return image;
}

}  // namespace juno::gpu::cuda
")
set(old "")
if(EXISTS ${generated})
  file(READ ${generated} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${generated} "${text}")
endif()
