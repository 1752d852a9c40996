// Libraries in the place of hwloc: the real one, which they are linked with, but for one function.
// A macro says which (test/rooms.cmake).
#include <dlfcn.h>
#include <time.h>

#include <cerrno>
#include <string>
#include <utility>

#define EXPORTED extern "C" __attribute__((visibility("default")))

template <class Function>
[[maybe_unused]] static Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL), name));
}

#if defined INCOMPLETE
EXPORTED unsigned hwloc_get_api_version() { return 0x00020000; }
#elif defined OTHER_ABI
EXPORTED unsigned hwloc_get_api_version() { return 0x00030000; }
#elif defined FAILS
EXPORTED int hwloc_topology_load(void*) {
  errno = ENOSYS;
  return -1;
}
#elif defined SLOW
EXPORTED int hwloc_topology_load(void* topology) {
  const timespec while_late{1, 0};
  nanosleep(&while_late, nullptr);
  return real<int (*)(void*)>("hwloc_topology_load")(topology);
}
#elif defined WATCHED
static std::string switched_off;
EXPORTED int hwloc_topology_set_components(void* topology, unsigned long flags, const char* name) {
  switched_off += std::string(name) + " ";
  return real<int (*)(void*, unsigned long, const char*)>("hwloc_topology_set_components")(
      topology, flags, name);
}
EXPORTED const char* fake_hwloc_switched_off() {  // since the last call
  static std::string told;
  told = std::exchange(switched_off, "");
  return told.c_str();
}
#endif
