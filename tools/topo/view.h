// What `riffle topo` shows: a machine, what Riffle would make of it, and perhaps the network around
// it. Built once, then printed as text, JSON or SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plugin/transport/device/device.h"
#include "plugin/transport/device/placement.h"
#include "topology/fabric/fabric.h"
#include "topology/host/machine.h"

namespace riffle::tools::topo {

struct NicUse {
  bool is_used = false;
  std::string why;  // a few words, e.g. "in bond0", "no carrier"
};

struct View {
  std::string name;  // of the host, or the file
  bool is_recorded = false;
  Machine machine;
  std::vector<NicUse> uses;  // one per machine.nics
  std::vector<Device> devices;
  std::string devices_why;
  CpuList job_cpus;  // what this process may use; all CPUs of a recorded machine
  placement::Decision placement;
  std::optional<Fabric> fabric;
  std::string fabric_name;
  std::vector<std::string> advice;  // sentences: what to look at or to change
};

// This machine, seen with the settings of this process.
View view_of_this_machine();
// A recorded one, with the same settings; every interface that is up counts as having an address.
View view_of(Machine machine, const std::string& name);

// What an interface runs at; "unknown" where the machine does not say.
std::string speed_text(const Machine& machine, const Nic& nic);
// Of the function at the end of a path; empty if the path is.
std::string address_of(const PciPath& path);
// The interfaces a device joins, with commas.
std::string interfaces_of(const Device& device);

}  // namespace riffle::tools::topo
