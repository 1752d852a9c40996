// A whole all-reduce by the shared object on this machine alone, without a GPU: processes that
// stand for nodes drive its COLLNET as NCCL does, over the loopback interface.
#pragma once

#include <string>

#include "tools/doctor/verdicts.h"

namespace riffle::tools {

// With Riffle's default settings, whatever the job's are. To be called before anything in this
// process has used the shared object at `path`, which reads its settings once.
void check_loop(const std::string& path, Verdicts* verdicts);

}  // namespace riffle::tools
