# What every target of the project is built with. Libraries pass it on to what links them.
add_library(riffle_options INTERFACE)
target_include_directories(riffle_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(riffle_options INTERFACE
  -Wall -Wextra -Wpedantic -Wno-missing-field-initializers
  -fno-semantic-interposition
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=  # __FILE__ in messages names the file, not the builder's folders
  -ffunction-sections -fdata-sections         # the linker drops from the plugin what it does not need
  -ffp-contract=off)                          # no fused products and sums: the same bits on every processor
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(riffle_options INTERFACE -Wno-restrict)  # false positives in std::string (PR 105651)
  # For files with AVX-512: GCC 12 warns of its own intrinsics (PR 105593).
  set(RIFFLE_INTRINSICS_WARNINGS -Wno-maybe-uninitialized -Wno-uninitialized)
else()
  target_compile_options(riffle_options INTERFACE -Wno-unknown-pragmas)  # GCC's ivdep, a hint
endif()

set(RIFFLE_SANITIZE "" CACHE STRING "Sanitizers for everything, e.g. address,undefined or thread")
if(RIFFLE_SANITIZE)
  target_compile_options(riffle_options INTERFACE -fsanitize=${RIFFLE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(riffle_options INTERFACE -fsanitize=${RIFFLE_SANITIZE})
  if(RIFFLE_SANITIZE MATCHES undefined)
    # A quarter of the time to build; the address sanitizer finds what they would.
    target_compile_options(riffle_options INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
endif()

option(RIFFLE_FUZZ "Build the fuzz targets for libFuzzer (needs clang)" OFF)
if(RIFFLE_FUZZ)  # the code under test must tell the fuzzer which of its branches were taken
  target_compile_options(riffle_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(riffle_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What needs no speed of its own, because what it calls is in libraries: the command and the studies,
# in builds that are neither installed nor measured.
option(RIFFLE_QUICK_COMPILE "Less optimisation in the command and the studies: for scripts/test only" OFF)
add_library(riffle_command_options INTERFACE)
if(RIFFLE_QUICK_COMPILE)
  target_compile_options(riffle_command_options INTERFACE -Og)
endif()

# Tests may break any RIFFLE_CHECK and see what follows: a branch more at each, so not in what is installed.
option(RIFFLE_FAULT_POINTS "Let tests break any RIFFLE_CHECK (topology/base/check.h)" OFF)
if(RIFFLE_FAULT_POINTS)
  target_compile_definitions(riffle_options INTERFACE RIFFLE_FAULT_POINTS)
endif()
