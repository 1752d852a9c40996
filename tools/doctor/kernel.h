// What the kernel gives a job's connections.
#pragma once

#include "plugin/config/config.h"
#include "tools/doctor/verdicts.h"

namespace riffle::tools {

// Its release, the congestion control of Riffle's sockets, how soon a lost packet is sent again.
void check_kernel(const Config& config, Verdicts* verdicts);

}  // namespace riffle::tools
