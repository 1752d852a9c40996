// A trial run of hwloc's own XML reader, which crashes on some damaged files (2.9: an object
// without complete_cpuset). Better a child than this command.
#pragma once

#include <string>

#include "topology/base/status.h"

namespace riffle::tools::topo {

// ok: reading `path` here will end, well or with a Status.
Status try_machine_file(const std::string& path);

}  // namespace riffle::tools::topo
