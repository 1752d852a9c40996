// The fabric as a TOML file (docs/fabric.md): written by people or tools, read by the node that
// plans.
//
// A file describes a whole cluster; a communicator uses some of its nodes. Reading never throws:
// every fault is a Status naming file, line, key and what would be accepted. No state, any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"

namespace riffle {

// The names one node answers to, the most telling first: RIFFLE_NODE_NAME, host name, addresses.
using NodeAliases = std::vector<std::string>;

struct LoadedFabric {
  Fabric fabric;  // the communicator's nodes in rank order; valid
  std::vector<std::string>
      notes;  // what a person should know, e.g. a node that took the default rate
};

// The part of the file that concerns `nodes` (one entry per rank). The first alias found in the
// file decides; a node of which no alias is found takes the default rate and a rack of its own kind
// without uplink limit, and is noted. Several nodes may match one entry (ranks on one host).
Result<LoadedFabric> load_fabric(const std::string& path, std::span<const NodeAliases> nodes);

// The same for text already read; `origin` stands for the file in messages.
Result<LoadedFabric> parse_fabric(const std::string& text, const std::string& origin,
                                  std::span<const NodeAliases> nodes);

// The fabric as a file that load_fabric reads back, if node names are distinct and rack names are
// too.
std::string to_toml(const Fabric& fabric);

}  // namespace riffle
