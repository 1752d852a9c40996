// Slurm's topology.yaml, which topograph writes too, and the JSON of topograph's graph engine:
//
//   - topology: NAME                          {"instances": [{"id": NODE,
//     cluster_default: true                      "network_layers": [LEAF, SPINE]}]}
//     tree: {switches: [{switch: S, nodes: LIST, children: LIST}]}
//     block: {blocks: [{block: B, nodes: LIST}]}          (or)  flat: true
//
// Other keys are left alone, so that files of newer releases can be read. Internal to racks_file.h.
#pragma once

#include <string>
#include <vector>

#include "topology/fabric/switch_table.h"

namespace riffle {

// At least one table with nodes; the cluster's default topology first.
Result<std::vector<SwitchTable>> read_topology_yaml(const std::string& text,
                                                    const std::string& origin);

}  // namespace riffle
