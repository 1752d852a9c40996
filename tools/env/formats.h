// The variables of a job in the languages that shells, launchers, containers and module systems
// read: sh, csh and fish for eval; nccl.conf; docker (an --env-file); slurm (what a TaskProlog
// prints); lua and tcl (modulefile.h); json.
#pragma once

#include <string>
#include <vector>

#include "tools/env/nccl_environment.h"
#include "topology/base/status.h"

namespace riffle::tools {

std::vector<std::string> format_names();

// Values are quoted so that they arrive as they are; one that the format cannot hold is an error.
// slurm reads this process's own environment, as its lines replace lists instead of adding to them.
Result<std::string> in_format(const std::string& format, const JobEnvironment& job);

}  // namespace riffle::tools
