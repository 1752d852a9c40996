// Whether hosts that are each in order agree with each other.
#pragma once

#include <vector>

#include "tools/doctor/host_report.h"
#include "tools/doctor/verdicts.h"

namespace riffle::tools {

// Their own problems, each once with all its hosts; then versions, builds, NCCL releases and
// settings that differ.
void check_agreement(const std::vector<HostReport>& reports, Verdicts* verdicts);

// One line per host.
std::string table_of(const std::vector<HostReport>& reports);

}  // namespace riffle::tools
