# Flags that every target of the project gets. GCC 12's -Wrestrict sees ghosts in string sums.
add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Wno-restrict -fno-semantic-interposition
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)  # __FILE__ in messages names the file, not the builder's folders
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # false alarms in std::string (PR 105651)
endif()
if(RIFFLE_SANITIZE)
  add_compile_options(-fsanitize=${RIFFLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RIFFLE_SANITIZE})
  if(RIFFLE_SANITIZE MATCHES undefined)
    # A quarter of the time to build; the address sanitizer finds what they would.
    add_compile_options(-fno-sanitize=null,object-size,vptr)
  endif()
endif()
option(RIFFLE_FUZZ "Build the fuzz targets for libFuzzer (needs clang)" OFF)
if(RIFFLE_FUZZ)  # the code under test must tell the fuzzer which of its branches were taken
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
include_directories(${PROJECT_SOURCE_DIR})
