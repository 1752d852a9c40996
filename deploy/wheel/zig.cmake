# zig as a compiler for one processor and one glibc; deploy/wheel/build sets the variables. Headers and
# libsodium's archive come from Debian packages that were only unpacked, so that none of this system's own
# headers is seen.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{ZIG_PROCESSOR})
set(CMAKE_LIBRARY_ARCHITECTURE $ENV{ZIG_PROCESSOR}-linux-gnu)
foreach(tool AR RANLIB)
  string(TOLOWER ${tool} name)
  set(CMAKE_${tool} $ENV{ZIG_TOOLS}/${name} CACHE FILEPATH "")
endforeach()
set(CMAKE_C_COMPILER $ENV{ZIG_TOOLS}/cc)
set(CMAKE_CXX_COMPILER $ENV{ZIG_TOOLS}/c++)
set(includes $ENV{ZIG_LIBRARIES}/usr/include $ENV{ZIG_LIBRARIES}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${includes})
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${includes})
# fmt 9 checks formats in a way that later releases of clang do not take for a constant, and Asio 1.74 asks for
# std::result_of, which C++20 has not and libc++ neither.
set(CMAKE_CXX_FLAGS_INIT "-DFMT_CONSTEVAL= -DBOOST_ASIO_HAS_STD_INVOKE_RESULT -fmacro-prefix-map=$ENV{ZIG_LIBRARIES}/=")
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_EXE_LINKER_FLAGS_INIT -s)
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
set(CMAKE_FIND_ROOT_PATH $ENV{ZIG_LIBRARIES})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind INCLUDE LIBRARY PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} $ENV{ZIG_LIBRARIES}/none)
