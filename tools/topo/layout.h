// The machine as a person thinks of it: NUMA nodes, in them PCIe switches, in those the cards. What
// text and drawing share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/host/machine.h"

namespace riffle::tools::topo {

// Cards below one PCIe switch, or (no switch) below the processor.
struct Branch {
  std::vector<std::string> switches;  // addresses, the outermost first; empty: none
  std::vector<const Gpu*> gpus;
  std::vector<const Nic*> nics;  // hardware only
};

struct Side {
  const NumaNode* node = nullptr;  // null: place unknown
  std::vector<Branch> branches;    // those without a switch first
  int cores = 0;
};

// Points into `machine`. Nodes without processors and cards are left out.
std::vector<Side> sides_of(const Machine& machine);

// Interfaces without hardware of their own.
std::vector<const Nic*> virtual_nics(const Machine& machine);

}  // namespace riffle::tools::topo
