// Parts of a machine from sysfs. Internal to topology/host; with read_machine_sysfs in one file, so
// that the shared object, which needs nothing else, is without hwloc.
#pragma once

#include <filesystem>

#include "topology/host/machine.h"

namespace riffle {

// CPUs, NUMA nodes and processors below <root>/devices/system. Reads no I/O.
void read_processors(const std::filesystem::path& root, Machine& machine);
// Processors' names from /proc/cpuinfo, which is of this machine only.
void read_cpuinfo(const std::filesystem::path& cpuinfo, Machine& machine);
// GPUs, NICs and the bridges above them below <root>/bus/pci.
void read_pci(const std::filesystem::path& root, Machine& machine);
// What PCIe links the functions of the machine can run at; better than what they run at now, which
// power saving lowers.
void read_pci_links(const std::filesystem::path& root, Machine& machine);

// The NICs of nics.h; a note where sysfs has none to show.
void read_nics(const std::string& sysfs, Machine& machine);

}  // namespace riffle
