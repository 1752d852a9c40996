// What every setting of Riffle would do in a job here: interfaces exist, files can be read, folders
// can be written, CPUs are there, modes are complete.
#pragma once

#include <string>
#include <vector>

#include "plugin/config/config.h"
#include "tools/doctor/job_variables.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::tools {

// All but interfaces. `self`: the names of this node in files.
void check_knobs(const Config& config, const NodeAliases& self, const JobVariables& variables,
                 Verdicts* verdicts);

// The addresses of the NICs that a job would use; nothing where a setting leaves none, so that no
// network starts.
std::vector<std::string> check_interfaces(const Config& config, const JobVariables& variables,
                                          Verdicts* verdicts);

}  // namespace riffle::tools
