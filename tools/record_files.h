// The files that the processes of a job write: records (RIFFLE_RECORD) and traces (RIFFLE_TRACE).
#pragma once

#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::tools {

// The given files, each with its FILE.1, and the files ending in `suffix` or `suffix`.1 of the
// given folders. An error if one is neither; `what` is looked for there, "record" for example.
Result<std::vector<std::string>> job_files(const std::vector<std::string>& paths,
                                           const std::string& suffix, const std::string& what);

}  // namespace riffle::tools
