// Runs a program and waits for it: the small tools (ip, tc) that set up an emulated network.
#pragma once

#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::cluster {

// argv[0] is looked up in PATH, then in the administrator's folders. `input` goes to its stdin. The
// result is its stdout; a failure names the program and carries its stderr. Killed after
// deadline_ms.
Result<std::string> run_command(const std::vector<std::string>& argv, const std::string& input = "",
                                int deadline_ms = 20000);

}  // namespace riffle::cluster
