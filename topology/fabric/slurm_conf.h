// Slurm's topology.conf, tree or block, as people and topograph write it: lines of KEY=VALUE pairs,
// keys in any case, # comments, \ at the end of a line continues it. Internal to racks_file.h.
#pragma once

#include <string>

#include "topology/fabric/switch_table.h"

namespace riffle {

Result<SwitchTable> read_slurm_conf(const std::string& text, const std::string& origin);

}  // namespace riffle
