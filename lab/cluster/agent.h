// A script that stands for ssh on an emulated cluster: `SCRIPT node2 COMMAND...` runs the command,
// joined as ssh joins it, in a shell in the namespaces of that node.
#pragma once

#include <string>

#include "lab/cluster/cluster.h"

namespace riffle::cluster {

Status write_agent(const std::string& path, const Cluster& cluster);

}  // namespace riffle::cluster
