// In place of hwloc_read.cc in a build without hwloc's headers.
#include "topology/host/machine_read.h"

namespace riffle {
namespace {

Status no_hwloc() {
  return system_error("hwloc: this build of Riffle was made without its headers");
}

}  // namespace

Result<Machine> read_machine_hwloc(std::vector<Nic>, const HwlocChoice&) { return no_hwloc(); }
Result<Machine> parse_machine_xml(const std::string&, const std::string&) { return no_hwloc(); }
Status record_machine(const std::string&) { return no_hwloc(); }

}  // namespace riffle
