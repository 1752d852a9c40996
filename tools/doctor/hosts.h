// `riffle doctor` on several hosts: every one looks at itself (host_report.h), then all connect to
// each other and measure, as a job's first communicator does.
#pragma once

#include <vector>

#include "tools/doctor/host_report.h"
#include "tools/doctor/verdicts.h"
#include "tools/probe/crew.h"

namespace riffle::tools {

// What a host does: tells of itself, then takes part in the measurement until `in` ends.
int serve_doctor(const Diagnosis& diagnosis, int in, int out);

struct HostsFinding {
  std::vector<HostReport> reports;  // of the hosts that came, each once
  Verdicts verdicts;
};

// The coordinator. `timeout_ms`: for hosts to come, and for each attempt to measure.
// `one_per_host`: a launcher may have started several processes on a host.
HostsFinding ask_hosts(Crew& crew, int timeout_ms, bool one_per_host);

}  // namespace riffle::tools
