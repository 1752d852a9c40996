# libsodium: Sodium::sodium. Its archive where there is one, so that the plugin needs no library that a
# host may lack; RIFFLE_SHARED_SODIUM=ON takes the shared library in any case.
option(RIFFLE_SHARED_SODIUM "Link libsodium's shared library, also where its archive is installed" OFF)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_SODIUM QUIET libsodium)
endif()
find_path(Sodium_INCLUDE_DIR sodium.h HINTS ${PC_SODIUM_INCLUDE_DIRS})
find_library(Sodium_SHARED_LIBRARY sodium HINTS ${PC_SODIUM_LIBRARY_DIRS})
find_library(Sodium_STATIC_LIBRARY libsodium.a HINTS ${PC_SODIUM_LIBRARY_DIRS} ${PC_SODIUM_STATIC_LIBRARY_DIRS})
mark_as_advanced(Sodium_INCLUDE_DIR Sodium_SHARED_LIBRARY Sodium_STATIC_LIBRARY)
set(Sodium_LIBRARY ${Sodium_STATIC_LIBRARY})
if(RIFFLE_SHARED_SODIUM OR NOT Sodium_STATIC_LIBRARY)
  set(Sodium_LIBRARY ${Sodium_SHARED_LIBRARY})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Sodium REQUIRED_VARS Sodium_LIBRARY Sodium_INCLUDE_DIR
  VERSION_VAR PC_SODIUM_VERSION)
if(Sodium_FOUND AND NOT TARGET Sodium::sodium)
  add_library(Sodium::sodium UNKNOWN IMPORTED)
  set_target_properties(Sodium::sodium PROPERTIES IMPORTED_LOCATION "${Sodium_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Sodium_INCLUDE_DIR}")
endif()
