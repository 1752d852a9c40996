# Tests of one room lie in the folder of its name; one executable per *_test.cc, each tests one header. Sanitized ones take a second each to link and
# long to start, so there all files are two programs, and a test of ctest is one file.
# Those that start threads or processes: thread sanitizer has nothing to look for in the others.
set(with_threads background_thread_test communicator_test faults_test handshake_test
  identity_threads_test link_streams_test link_test log_test
  mesh_test net_test peer_loss_test placement_test reactor_test survivors_test telemetry_test)
file(GLOB_RECURSE tests CONFIGURE_DEPENDS topology/*_test.cc sparse/*_test.cc plugin/*_test.cc)
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/topology/fabric_test.cc PROPERTIES
  COMPILE_DEFINITIONS RIFFLE_DOCS="${PROJECT_SOURCE_DIR}/docs")
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/topology/machine_test.cc PROPERTIES
  COMPILE_DEFINITIONS RIFFLE_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/topology/machines")

# tests_of(FILE OUT): gtest's filter for all tests of a file, which may share their suite with another's.
function(tests_of file out)
  file(STRINGS ${file} lines REGEX "^(TYPED_)?TEST(_[FP])?[(]")
  if(NOT lines)
    message(FATAL_ERROR "${file} has no TEST at the beginning of a line")
  endif()
  list(FILTER lines INCLUDE REGEX "^[A-Z_]+[(]")  # a semicolon in a line cuts it
  list(TRANSFORM lines REPLACE "^TYPED_TEST[(]([A-Za-z0-9]+), *([A-Za-z0-9_]+).*" "\\1/*.\\2")
  list(TRANSFORM lines REPLACE "^TEST_P[(]([A-Za-z0-9]+), *([A-Za-z0-9_]+).*" "*/\\1.\\2/*")
  list(TRANSFORM lines REPLACE "^TEST(_F)?[(]([A-Za-z0-9]+), *([A-Za-z0-9_]+).*" "\\2.\\3")
  list(JOIN lines ":" filter)
  set(${out} ${filter} PARENT_SCOPE)
endfunction()

if(RIFFLE_SANITIZE)
  add_executable(riffle_unit_tests)
  gtest_program(riffle_unit_tests riffle_mode_jobs riffle_memory riffle_core riffle_sparse)
  add_executable(riffle_threads_tests)
  gtest_program(riffle_threads_tests riffle_memory riffle_core)
else()
  add_custom_target(riffle_unit_tests)
endif()

foreach(file ${tests})
  get_filename_component(name ${file} NAME_WE)
  set(properties TIMEOUT 300 LABELS unit PROCESSORS 1)
  set(program riffle_unit_tests)
  if(name IN_LIST with_threads)
    set(properties TIMEOUT 300 LABELS unit-threads PROCESSORS 1)
    set(program riffle_threads_tests)
  endif()
  if(name STREQUAL survivors_test)  # eight processes at once
    set(properties TIMEOUT 300 LABELS unit-threads PROCESSORS 2)
  endif()
  if(RIFFLE_SANITIZE)
    target_sources(${program} PRIVATE ${file})
    tests_of(${file} filter)
    add_test(NAME ${name} COMMAND ${program} --gtest_brief=1 "--gtest_filter=${filter}")
    set_tests_properties(${name} PROPERTIES ${properties})
  else()
    add_executable(${name} ${file})
    gtest_program(${name} riffle_mode_jobs riffle_memory riffle_core riffle_sparse)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
    add_dependencies(riffle_unit_tests ${name})
  endif()
endforeach()
