# hwloc's headers: Hwloc::headers. The library itself is loaded at run time (topology/host/hwloc_library.h).
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_HWLOC QUIET hwloc)
endif()
find_path(Hwloc_INCLUDE_DIR hwloc.h HINTS ${PC_HWLOC_INCLUDE_DIRS})
mark_as_advanced(Hwloc_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hwloc REQUIRED_VARS Hwloc_INCLUDE_DIR VERSION_VAR PC_HWLOC_VERSION)
if(Hwloc_FOUND AND NOT TARGET Hwloc::headers)
  add_library(Hwloc::headers INTERFACE IMPORTED)
  set_target_properties(Hwloc::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Hwloc_INCLUDE_DIR}")
endif()
