// One word from rank 0 to all processes of a launch, through the launcher's PMIx server (Open MPI's
// mpirun, PRRTE, srun --mpi=pmix). The library is loaded when it is needed; without its header at
// build time, or the library at run time, the answer is an error that says so.
#pragma once

#include <string>

#include "topology/base/status.h"

namespace riffle::tools {

// Collective over all processes of the launch. Rank 0 gives `word`; all get it back.
Result<std::string> share_by_pmix(int rank, const std::string& word, int timeout_s);

}  // namespace riffle::tools
