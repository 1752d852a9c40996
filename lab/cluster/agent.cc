#include "lab/cluster/agent.h"

#include <sys/stat.h>

#include <fstream>

namespace riffle::cluster {

Status write_agent(const std::string& path, const Cluster& cluster) {
  std::ofstream script(path);
  script << "#!/bin/sh\nnode=$1\nshift\ncase $node in\n";
  for (int n = 0; n < cluster.size(); ++n) {
    script << "  node" << n << ") pid=" << cluster.holders()[static_cast<std::size_t>(n)]
           << "; procs='" << cluster.cpu_shares().procs_file(n) << "' ;;\n";
  }
  script << "  *) echo \"no such node: $node\" >&2; exit 1 ;;\nesac\n"
         << "if [ -n \"$procs\" ]; then echo $$ >\"$procs\" || exit 1; fi\n"
         << "exec nsenter --target $pid --net --uts"
         << (cluster.in_user_namespace() ? " --user --preserve-credentials" : "")
         << " sh -c \"$*\"\n";
  script.close();
  if (!script || chmod(path.c_str(), 0700) != 0) return system_error("cannot write " + path);
  return Status::ok();
}

}  // namespace riffle::cluster
