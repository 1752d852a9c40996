#include "topology/host/hwloc_library.h"

#include <dlfcn.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace riffle {
namespace {

std::string why(int error) {
  return error != 0 ? ": " + std::string(std::strerror(error)) : std::string();
}

}  // namespace

Result<HwlocLibrary> HwlocLibrary::load(const std::string& name) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = ::dlerror();
    return system_error("hwloc: " + (error != nullptr ? error : name) +
                        " (Debian and Ubuntu: package libhwloc15)");
  }
  HwlocLibrary h;
  std::string missing;
  const auto find = [&]<class Function>(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, symbol));
    if (function == nullptr && missing.empty()) missing = symbol;
  };
  find("hwloc_get_api_version", h.get_api_version);
  find("hwloc_topology_init", h.topology_init);
  find("hwloc_topology_abi_check", h.topology_abi_check);
  find("hwloc_topology_load", h.topology_load);
  find("hwloc_topology_destroy", h.topology_destroy);
  find("hwloc_topology_set_flags", h.topology_set_flags);
  find("hwloc_topology_set_io_types_filter", h.topology_set_io_types_filter);
  find("hwloc_topology_set_type_filter", h.topology_set_type_filter);
  find("hwloc_topology_set_components", h.topology_set_components);
  find("hwloc_topology_set_xmlbuffer", h.topology_set_xmlbuffer);
  find("hwloc_topology_is_thissystem", h.topology_is_thissystem);
  find("hwloc_topology_export_xml", h.topology_export_xml);
  find("hwloc_topology_insert_misc_object", h.topology_insert_misc_object);
  find("hwloc_get_obj_by_depth", h.get_obj_by_depth);
  find("hwloc_obj_add_info", h.obj_add_info);
  find("hwloc_bitmap_next", h.bitmap_next);
  if (!missing.empty()) {
    return system_error("hwloc: " + name + " lacks " + missing + ": wanted is hwloc 2.1 to 2.x");
  }
  if (h.get_api_version() >> 16 != HWLOC_API_VERSION >> 16) {
    return system_error("hwloc: " + name + " has API " + h.version() +
                        ": wanted is hwloc 2.1 to 2.x");
  }
  return h;
}

std::string HwlocLibrary::version() const {
  const unsigned v = get_api_version();
  return std::to_string(v >> 16) + "." + std::to_string(v >> 8 & 0xff);
}

Result<HwlocTopology> HwlocTopology::make(const std::string& name) {
  const Result<HwlocLibrary> library = HwlocLibrary::load(name);
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

Result<HwlocTopology> HwlocTopology::of_this_machine(const HwlocChoice& choice) {
  Result<HwlocTopology> topology = make(choice.library);
  if (!topology) return topology;
  const HwlocLibrary& library = topology->library();
  const auto without = [&](const char* component) {  // one that is not there is none, too
    library.topology_set_components(topology->handle(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                    component);
  };
  // They ask X11 servers, OpenCL platforms and drivers of GPUs: slow, and nothing of use here.
  for (const char* c : {"gl", "opencl", "cuda", "nvml", "rsmi", "levelzero"}) without(c);
  without("x86");  // moves the thread from CPU to CPU, for what Linux tells as well
  // libpciaccess keeps its state per process, and the job's own hwloc may read at the same time;
  // sysfs has all but the names.
  if (!choice.names_cards) without("pci");
  errno = 0;
  if (library.topology_load(topology->handle()) != 0 || topology->root() == nullptr) {
    return system_error("hwloc cannot look at this machine" + why(errno));
  }
  if (library.topology_is_thissystem(topology->handle()) == 0) {
    return system_error(
        "hwloc shows another machine than this one: HWLOC_XMLFILE, HWLOC_SYNTHETIC or another of "
        "its variables is set");
  }
  return topology;
}

Result<HwlocTopology> HwlocTopology::from_xml(const std::string& xml, const std::string& origin) {
  Result<HwlocTopology> topology = make(kHwlocLibrary);
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
