// Where a Machine comes from.
//
// hwloc is loaded when first asked for (libhwloc.so.15, hwloc 2.x), never linked: nothing depends
// on it, and it runs in the `riffle` command only. Inside a job the machine is read from sysfs: it
// takes a few milliseconds, where hwloc takes tens and loads its own plugins (OpenCL, X11) into
// the process. Both tell the same (test/topology/machine_test).
//
// Recorded machines are hwloc XML exports. What hwloc does not know of a NIC (speed, driver, bond)
// stands there as info attributes of its OS device, written by record_machine: "RiffleState" (up,
// down, no-carrier), "RiffleSpeedMbps", "RiffleDriver", "RiffleKind", "RiffleBondMembers",
// "RiffleBondMaster", "RiffleLower", "RiffleMtu". An export of lstopo lacks them and says less.
//
// Any thread; no state but the loaded library.
#pragma once

#include <string>

#include "topology/base/status.h"
#include "topology/host/machine.h"

namespace riffle {

// This machine: hwloc, completed from sysfs; without hwloc sysfs alone, and a note says why.
Result<Machine> read_machine();

// This machine from sysfs alone. `sysfs` is the mount point; tests give a tree of theirs.
Result<Machine> read_machine_sysfs(const std::string& sysfs = "/sys");

// This machine from hwloc alone: NICs have neither speed nor driver.
Result<Machine> read_machine_hwloc();

// A recorded machine. Errors name the file (`origin`) and what is wrong with it.
Result<Machine> read_machine_xml(const std::string& path);
Result<Machine> parse_machine_xml(const std::string& xml, const std::string& origin);

// Writes this machine as a file that read_machine_xml reads back to what read_machine saw.
Status record_machine(const std::string& path);

}  // namespace riffle
