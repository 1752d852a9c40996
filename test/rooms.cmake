# Tests of one room lie in the folder of its name, each tests one header.
# Those that start threads or processes: thread sanitizer has nothing to look for in the others.
set(with_threads background_thread_test comm_trace_test communicator_test encrypted_link_test encrypted_mesh_test faults_test handshake_test
  identity_threads_test link_channels_test link_clock_test link_delivery_test link_joining_test link_streams_test link_test log_test
  machine_reading_test mesh_test net_test peer_loss_test placement_test pollers_test reactor_test several_threads_test shared_links_terms_test shared_links_test
  strangers_test survivors_test telemetry_test traced_calls_test unshared_links_test)
list(JOIN with_threads "|" with_threads)
file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/topology/*_test.cc
  ${CMAKE_CURRENT_SOURCE_DIR}/sparse/*_test.cc ${CMAKE_CURRENT_SOURCE_DIR}/plugin/*_test.cc)
set(threads_tests ${tests})
list(FILTER threads_tests INCLUDE REGEX "/(${with_threads})[.]cc$")
list(FILTER tests EXCLUDE REGEX "/(${with_threads})[.]cc$")
set(survivors ${threads_tests})
list(FILTER survivors INCLUDE REGEX "/survivors_test[.]cc$")
list(REMOVE_ITEM threads_tests ${survivors})

gtest_program(riffle_unit_tests FILES ${tests}
  LIBRARIES riffle_mode_jobs riffle_memory riffle_machine_json riffle_core riffle_sparse
  PROPERTIES TIMEOUT 300 LABELS unit PROCESSORS 1)
target_compile_definitions(riffle_unit_tests PRIVATE RIFFLE_DOCS="${PROJECT_SOURCE_DIR}/docs"
  RIFFLE_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/topology/machines"
  RIFFLE_ROUNDS="${CMAKE_CURRENT_SOURCE_DIR}/topology/rounds"
  RIFFLE_NIC_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/plugin/transport/nic_machines.txt")
gtest_program(riffle_threads_tests FILES ${threads_tests} LIBRARIES riffle_memory riffle_core
  PROPERTIES TIMEOUT 300 LABELS unit-threads PROCESSORS 1)
# Libraries in the place of hwloc (fake_hwloc.cc): the real one but for one function.
foreach(fault INCOMPLETE OTHER_ABI FAILS SLOW WATCHED)
  add_library(fake_hwloc_${fault} MODULE ${CMAKE_CURRENT_SOURCE_DIR}/plugin/transport/fake_hwloc.cc)
  target_compile_definitions(fake_hwloc_${fault} PRIVATE ${fault})
  if(NOT fault STREQUAL INCOMPLETE)
    target_link_options(fake_hwloc_${fault} PRIVATE -Wl,--no-as-needed)
    target_link_libraries(fake_hwloc_${fault} PRIVATE -l:libhwloc.so.15)
  endif()
  add_dependencies(riffle_threads_tests fake_hwloc_${fault})
endforeach()
target_compile_definitions(riffle_threads_tests PRIVATE
  RIFFLE_FAKE_HWLOC="$<TARGET_FILE_DIR:fake_hwloc_SLOW>/libfake_hwloc_")
# What carries frames once more, over encrypted links.
add_test(NAME encrypted_links COMMAND riffle_threads_tests --gtest_brief=1
  "--gtest_filter=Mesh.*:*MeshStreams*:Net.*:CommunicatorTest.*:PeerLoss.*:*NetPeerLoss*:SharedLinksOrder.*")
set_tests_properties(encrypted_links PROPERTIES TIMEOUT 300 LABELS unit-threads PROCESSORS 1
  ENVIRONMENT RIFFLE_ENCRYPT=1)
# ... and over several progress threads, which the nodes within a process take in turn.
add_test(NAME two_threads COMMAND riffle_threads_tests --gtest_brief=1
  "--gtest_filter=Mesh.*:*MeshStreams*:Net.*:CommunicatorTest.*:PeerLoss.*:*NetPeerLoss*")
set_tests_properties(two_threads PROPERTIES TIMEOUT 300 LABELS unit-threads PROCESSORS 2
  ENVIRONMENT RIFFLE_THREADS=2)
gtest_program(riffle_threads_tests FILES ${survivors}  # eight processes at once
  PROPERTIES TIMEOUT 300 LABELS unit-threads PROCESSORS 2)
