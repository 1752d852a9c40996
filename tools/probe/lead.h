// The coordinator of `riffle probe`: brings the crew to one measurement (lines: peer.h).
//
// A host that does not come, runs another version or stands on a machine that is there already
// takes no part. If a host is lost while they measure the others measure again without it. Every
// step has a deadline, and there are at most kMostAttempts.
#pragma once

#include "tools/probe/crew.h"
#include "tools/probe/findings.h"

namespace riffle::tools {

inline constexpr int kMostAttempts = 3;

// What the hosts that took part found; findings.absent says who did not, and why. An error if fewer
// than two remain or the hosts cannot measure. `timeout_ms`: for hosts to come, and for each
// attempt. `one_per_host`: a launcher may have started several processes on a host, and one of them
// is enough; else a second one counts as a host that is absent.
Result<ProbeFindings> lead_probe(Crew& crew, int timeout_ms, bool one_per_host);

// Who takes no part (any more), and why; not the spare processes of hosts that do.
std::vector<std::pair<std::string, std::string>> absent_hosts(const Crew& crew);

// Replaces the numbers in "node 3" and "node(s) 3, 5" by names.
std::string with_names(const std::string& sentence, const std::vector<std::string>& names);

}  // namespace riffle::tools
