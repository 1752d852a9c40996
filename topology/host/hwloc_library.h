// libhwloc, found at run time: the functions we call, typed by its own header, and a topology that
// frees itself. Internal to topology/host: hwloc's types stay out of its public headers.
//
// Only functions that are symbols of the library appear here; those that hwloc.h defines inline
// would pull in symbols at link time.
#pragma once

#include <hwloc.h>
#include <hwloc/export.h>

#include <string>
#include <string_view>
#include <utility>

#include "topology/base/status.h"
#include "topology/host/machine_read.h"

namespace riffle {

struct HwlocLibrary {
  decltype(&hwloc_get_api_version) get_api_version = nullptr;
  decltype(&hwloc_topology_init) topology_init = nullptr;
  decltype(&hwloc_topology_abi_check) topology_abi_check = nullptr;
  decltype(&hwloc_topology_load) topology_load = nullptr;
  decltype(&hwloc_topology_destroy) topology_destroy = nullptr;
  decltype(&hwloc_topology_set_flags) topology_set_flags = nullptr;
  decltype(&hwloc_topology_set_io_types_filter) topology_set_io_types_filter = nullptr;
  decltype(&hwloc_topology_set_type_filter) topology_set_type_filter = nullptr;
  decltype(&hwloc_topology_set_components) topology_set_components = nullptr;
  decltype(&hwloc_topology_set_xmlbuffer) topology_set_xmlbuffer = nullptr;
  decltype(&hwloc_topology_is_thissystem) topology_is_thissystem = nullptr;
  decltype(&hwloc_topology_export_xml) topology_export_xml = nullptr;
  decltype(&hwloc_topology_insert_misc_object) topology_insert_misc_object = nullptr;
  decltype(&hwloc_get_obj_by_depth) get_obj_by_depth = nullptr;
  decltype(&hwloc_obj_add_info) obj_add_info = nullptr;
  decltype(&hwloc_bitmap_next) bitmap_next = nullptr;

  // By a name that the loader knows, or a path. The library is never unloaded.
  static Result<HwlocLibrary> load(const std::string& name = kHwlocLibrary);
  std::string version() const;  // of its API: "2.8" (hwloc 2.9 has that)
};

class HwlocTopology {
 public:
  // This machine, with all that PCI knows. What HWLOC_XMLFILE or HWLOC_SYNTHETIC put in its place
  // is an error.
  static Result<HwlocTopology> of_this_machine(const HwlocChoice& choice);
  // `origin` stands for the text in messages.
  static Result<HwlocTopology> from_xml(const std::string& xml, const std::string& origin);

  HwlocTopology(HwlocTopology&& other) noexcept
      : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}
  HwlocTopology& operator=(HwlocTopology&&) = delete;
  ~HwlocTopology() {
    if (handle_ != nullptr) library_.topology_destroy(handle_);
  }

  const HwlocLibrary& library() const { return library_; }
  hwloc_topology_t handle() const { return handle_; }
  hwloc_obj_t root() const { return library_.get_obj_by_depth(handle_, 0, 0); }

 private:
  HwlocTopology(const HwlocLibrary& library, hwloc_topology_t handle)
      : library_(library), handle_(handle) {}
  static Result<HwlocTopology> make(const std::string& library);

  const HwlocLibrary library_;
  hwloc_topology_t handle_;
};

// An info attribute of an object; empty if it has none of that name.
inline const char* hwloc_info(hwloc_obj_t object, std::string_view name) {
  for (unsigned i = 0; i < object->infos_count; ++i) {
    if (object->infos[i].name == name) return object->infos[i].value;
  }
  return "";
}

}  // namespace riffle
