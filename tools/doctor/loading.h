// The tables as NCCL would load them: found by its rules, and all of one file, as only then they
// share what they know. Rules by release: docs/nccl-contract.md, "Loading rules".
#pragma once

#include <string>

#include "tools/doctor/job_variables.h"
#include "tools/env/nccl_environment.h"

namespace riffle::tools {

// The file that NCCL_NET_PLUGIN names, else the one `beside` this command, or empty. `nccl`: a
// release's version code; 0: not known, then the rules of the newest hold. `has_collectives`:
// all-reduces may be Riffle's, and so must be the tuner.
std::string check_loading(int nccl, const PluginPlace& beside, bool has_collectives,
                          const JobVariables& variables, Verdicts* verdicts);

void check_tables(const std::string& path, Verdicts* verdicts);

}  // namespace riffle::tools
