// Racks from files that other tools keep: Slurm's topology.conf (tree and block) and topology.yaml,
// and what NVIDIA topograph writes (the same two formats, and the JSON of its graph engine).
//
// A file describes a whole cluster; a communicator uses some of its nodes. The switch that a node
// hangs on directly is its rack; a Slurm block is a rack too. Higher switches are checked, not
// used. Such files know no rates (Slurm's LinkSpeed has arbitrary units): uplinks come out without
// limit, and measuring fills them in.
//
// Reading never throws: every fault is a Status naming file, line and what would be accepted. No
// state, any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"
#include "topology/fabric/fabric_file.h"

namespace riffle {

struct Racks {
  std::vector<RackLink> racks;  // those that hold a node of ours, in the order of their first one
  std::vector<int> rack_of;     // by rank: index in racks
  std::string source;           // for messages: "topology file /etc/slurm/topology.conf"
};

// The racks of `nodes` (one entry per rank). A node is found under any of its aliases, host names
// also without their domain. Errors: unreadable or malformed file, a node of the file in two racks,
// a node of ours that is not in the file. After an error the caller goes on without the file.
Result<Racks> load_racks(const std::string& path, std::span<const NodeAliases> nodes);

// The same for text already read; `origin` stands for the file in messages.
Result<Racks> parse_racks(const std::string& text, const std::string& origin,
                          std::span<const NodeAliases> nodes);

// The topology file of the Slurm job that this process runs in: topology.yaml, else topology.conf,
// beside $SLURM_CONF or, if that is not set but SLURM_JOB_ID is, in the folders where Slurm keeps
// its configuration. Empty: not in a Slurm job, or there is no such file. Reads the environment.
std::string slurm_topology_file();

// Replaces the fabric's racks. Precondition: racks.rack_of has one entry per node of the fabric.
void put_into_racks(const Racks& racks, Fabric& fabric);

}  // namespace riffle
