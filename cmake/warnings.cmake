# Flags that every target of the project gets. GCC 12's -Wrestrict sees ghosts in string sums.
add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Wno-restrict -fno-semantic-interposition
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)  # __FILE__ in messages names the file, not the builder's folders
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # false alarms in std::string (PR 105651)
endif()
if(RIFFLE_SANITIZE)
  add_compile_options(-fsanitize=${RIFFLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RIFFLE_SANITIZE})
endif()
include_directories(${PROJECT_SOURCE_DIR})
