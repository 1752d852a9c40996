# Flags that every target of the project gets.
add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers -fno-semantic-interposition)
if(RIFFLE_SANITIZE)
  add_compile_options(-fsanitize=${RIFFLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RIFFLE_SANITIZE})
endif()
include_directories(${PROJECT_SOURCE_DIR})
