// Where a Machine comes from: hwloc, or nowhere, and then it is flat.
//
// hwloc is loaded when first asked for (libhwloc.so.15, hwloc 2.1 to 2.x), never linked: nothing
// depends on it. It tells cores, NUMA nodes, PCI and GPUs; sysfs tells of NICs what hwloc does not
// know: speed, driver, state (nics.h). A build without hwloc's headers has flat machines only.
//
// Recorded machines are hwloc XML exports. What hwloc does not know of a NIC (speed, driver, bond)
// stands there as info attributes of its OS device, written by record_machine: "RiffleState" (up,
// down, no-carrier), "RiffleSpeedMbps", "RiffleDriver", "RiffleKind", "RiffleBondMembers",
// "RiffleBondMaster", "RiffleLower", "RiffleMtu". An export of lstopo lacks them and says less.
//
// Any thread; no state. hwloc may take long: a job reads by plugin/transport/device/
// machine_reading.h.
#pragma once

#include <string>
#include <vector>

#include "topology/base/status.h"
#include "topology/host/machine.h"

namespace riffle {

inline constexpr char kHwlocLibrary[] = "libhwloc.so.15";  // the ABI of hwloc 2.x

struct HwlocChoice {
  std::string library = kHwlocLibrary;
  bool names_cards = false;  // by libpciaccess, which is not for a process with other users of it
};

// This machine as hwloc sees it, with `nics`, what sysfs says of them, where hwloc sees them. The
// error says why there is none.
Result<Machine> read_machine_hwloc(std::vector<Nic> nics, const HwlocChoice& choice = {});

// One processor and NUMA node with `cpus`, each a core, and everything equally near.
Machine flat_machine(const CpuList& cpus, std::vector<Nic> nics);

// For the command: this machine, with what PCIe links can run at. Without hwloc it is flat, with
// `cpus`, and a note says why.
Machine read_machine(const CpuList& cpus);

// A recorded machine. Errors name the file (`origin`) and what is wrong with it.
Result<Machine> read_machine_xml(const std::string& path);
Result<Machine> parse_machine_xml(const std::string& xml, const std::string& origin);

// Writes this machine as a file that read_machine_xml reads back to what read_machine saw.
Status record_machine(const std::string& path);

}  // namespace riffle
