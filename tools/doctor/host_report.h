// What one host says of itself in `riffle doctor --hosts`, as a line of text to the coordinator:
// "diagnosed {JSON}" (tools/probe/crew.h carries lines).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/diagnosis.h"
#include "topology/base/status.h"

namespace riffle::tools {

struct HostReport {
  std::string host;          // as it calls itself
  std::string version;       // of this command
  std::string build;         // of the shared object: a hash of its content; empty: there is none
  std::string nccl;          // empty: not known
  std::int64_t clock_s = 0;  // since the epoch
  std::string mtu;           // of the NICs in use; empty: not known
  std::uint64_t files = 0;   // that a process may open; 0: no limit, or not known
  std::map<std::string, std::string> settings;                // those that must be equal everywhere
  std::vector<std::pair<std::string, std::string>> problems;  // with the remedy of each
};

HostReport report_of(const Diagnosis& diagnosis);
std::string to_line(const HostReport& report);
Result<HostReport> report_from_line(const std::string& line);

}  // namespace riffle::tools
