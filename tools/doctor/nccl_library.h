// The NCCL that a job of this environment would load: of LD_LIBRARY_PATH, of the active environment
// of Python, of the system.
#pragma once

#include <string>

#include "tools/doctor/verdicts.h"
#include "tools/env/nccl_environment.h"

namespace riffle::tools {

struct NcclLibrary {
  std::string path;  // empty: there is none
  int release = 0;   // its version code
};
NcclLibrary find_nccl(const PluginPlace& beside);

// What is there, and which tables the release reads. `asked`: the code that --nccl names, 0: none.
// Returns the release that everything else is checked for; 0: not known.
int check_nccl(const NcclLibrary& here, int asked, Verdicts* verdicts);

}  // namespace riffle::tools
