# Runs at install time, after the command and the plugin are in place: one modulefile for Lmod, one
# for Environment Modules, both printed by the installed command. tools/CMakeLists.txt sets `command`
# and `modulefile`, paths below the prefix, and `emulator`, for another processor's programs.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX NORMALIZE OUTPUT_VARIABLE prefix)
set(staged "$ENV{DESTDIR}${prefix}")
file(REAL_PATH "${staged}" real)  # as the command sees it
set(suffix_lua .lua)
foreach(format lua tcl)
  set(file "${staged}/${modulefile}${suffix_${format}}")
  message(STATUS "Installing: ${file}")
  execute_process(COMMAND ${emulator} "${staged}/${command}" env --format ${format}
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "${real}" "${prefix}" text "${text}")
  file(WRITE "${file}" "${text}")
endforeach()
