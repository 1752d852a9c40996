# Cross-compiling for aarch64 on Debian. Packages, after `dpkg --add-architecture arm64`: g++-aarch64-linux-gnu,
# qemu-user-static, and libstdc++6 libsodium-dev libhwloc-dev libgtest-dev zlib1g-dev, each with :arm64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# The host's libraries are not looked at; headers of packages for any processor lie in /usr/include.
set(CMAKE_IGNORE_PREFIX_PATH /usr/lib/x86_64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# Tests, and programs that the build itself runs.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
