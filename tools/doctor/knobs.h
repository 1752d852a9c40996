// What every setting of Riffle would do in a job here: interfaces exist, files can be read, folders
// can be written, CPUs are there, modes are complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/config/config.h"
#include "tools/doctor/job_variables.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::tools {

// All but interfaces. `self`: the names of this node in files.
void check_knobs(const Config& config, const NodeAliases& self, const JobVariables& variables,
                 Verdicts* verdicts);

// The limit that a process may raise its own to; 0: there is none.
std::uint64_t most_open_files();

// The NICs that a job would use; none where a setting leaves none, so that no network starts.
struct NicsInUse {
  std::vector<std::string> addresses;
  std::string mtu;  // "1500", "1500 and 9000"; empty: not known
};
NicsInUse check_interfaces(const Config& config, const JobVariables& variables, Verdicts* verdicts);

}  // namespace riffle::tools
