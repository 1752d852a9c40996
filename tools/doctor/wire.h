// RIFFLE_NET where it names another library: that it can be opened, is not Riffle itself, and has a
// table for this NCCL; what then becomes of all-reduces; and what else the library has that Riffle
// does not pass on, with what to set for it.
#pragma once

#include <string>

#include "plugin/config/config.h"
#include "tools/doctor/job_variables.h"

namespace riffle::tools {

// True: NET is to be another library's. `plugin`: Riffle's shared object, empty if there is none;
// `nccl`: a release's version code, 0 if it is not known.
bool check_wire(const Config& config, const std::string& plugin, int nccl,
                const JobVariables& variables, Verdicts* verdicts);

}  // namespace riffle::tools
