#include "topology/host/hwloc_library.h"

#include <dlfcn.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace riffle {
namespace {

constexpr const char* kLibrary = "libhwloc.so.15";  // the ABI of hwloc 2.x

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<HwlocLibrary> load() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return system_error("hwloc: " + std::string(why != nullptr ? why : kLibrary) +
                        " (Debian and Ubuntu: package libhwloc15)");
  }
  HwlocLibrary h;
  const bool is_complete =
      find(library, "hwloc_get_api_version", h.get_api_version) &&
      find(library, "hwloc_topology_init", h.topology_init) &&
      find(library, "hwloc_topology_abi_check", h.topology_abi_check) &&
      find(library, "hwloc_topology_load", h.topology_load) &&
      find(library, "hwloc_topology_destroy", h.topology_destroy) &&
      find(library, "hwloc_topology_set_flags", h.topology_set_flags) &&
      find(library, "hwloc_topology_set_io_types_filter", h.topology_set_io_types_filter) &&
      find(library, "hwloc_topology_set_type_filter", h.topology_set_type_filter) &&
      find(library, "hwloc_topology_set_components", h.topology_set_components) &&
      find(library, "hwloc_topology_set_xmlbuffer", h.topology_set_xmlbuffer) &&
      find(library, "hwloc_topology_export_xml", h.topology_export_xml) &&
      find(library, "hwloc_topology_insert_misc_object", h.topology_insert_misc_object) &&
      find(library, "hwloc_get_obj_by_depth", h.get_obj_by_depth) &&
      find(library, "hwloc_obj_add_info", h.obj_add_info) &&
      find(library, "hwloc_bitmap_next", h.bitmap_next);
  if (!is_complete || h.get_api_version() >> 16 != HWLOC_API_VERSION >> 16) {
    return system_error(std::string("hwloc: ") + kLibrary + " is not hwloc 2.1 or later");
  }
  return h;  // stays loaded: functions of it may be called until the process ends
}

std::string why(int error) {
  return error != 0 ? ": " + std::string(std::strerror(error)) : std::string();
}

}  // namespace

const Result<HwlocLibrary>& HwlocLibrary::get() {
  static const Result<HwlocLibrary> library = load();
  return library;
}

std::string HwlocLibrary::version() const {
  const unsigned v = get_api_version();
  return std::to_string(v >> 16) + "." + std::to_string(v >> 8 & 0xff);
}

Result<HwlocTopology> HwlocTopology::make() {
  const Result<HwlocLibrary>& library = HwlocLibrary::get();
  if (!library) return library.status();
  hwloc_topology_t handle = nullptr;
  if (library->topology_init(&handle) != 0) return system_error("hwloc: no topology" + why(errno));
  HwlocTopology topology(*library, handle);
  if (library->topology_abi_check(handle) != 0) {
    return system_error("hwloc: version " + library->version() + " has other structures than " +
                        "the one Riffle was built with");
  }
  library->topology_set_io_types_filter(handle, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  library->topology_set_type_filter(handle, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_ALL);
  // The whole machine; what this process may use of it is sched_getaffinity's to say.
  library->topology_set_flags(handle, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  return topology;
}

Result<HwlocTopology> HwlocTopology::of_this_machine() {
  Result<HwlocTopology> topology = make();
  if (!topology) return topology;
  const HwlocLibrary& library = topology->library();
  // X11 servers and OpenCL platforms say nothing of use here and are slow to ask.
  for (const char* component : {"gl", "opencl"}) {
    library.topology_set_components(topology->handle(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                    component);
  }
  errno = 0;
  if (library.topology_load(topology->handle()) != 0 || topology->root() == nullptr) {
    return system_error("hwloc cannot look at this machine" + why(errno));
  }
  return topology;
}

Result<HwlocTopology> HwlocTopology::from_xml(const std::string& xml, const std::string& origin) {
  Result<HwlocTopology> topology = make();
  if (!topology) return topology;
  const std::string wrong = origin +
                            " is not a machine that hwloc 2 can read (wanted: the output "
                            "of `lstopo --of xml` or `riffle topo --record`)";
  if (xml.find("<topology") == std::string::npos) {
    return invalid_argument(wrong + (xml.empty() ? ": it is empty" : ": it has no <topology>"));
  }
  const HwlocLibrary& library = topology->library();
  errno = 0;
  // The size counts the final zero.
  if (library.topology_set_xmlbuffer(topology->handle(), xml.c_str(),
                                     static_cast<int>(xml.size() + 1)) != 0 ||
      library.topology_load(topology->handle()) != 0 || topology->root() == nullptr) {
    return invalid_argument(wrong + why(errno));
  }
  return topology;
}

}  // namespace riffle
