// Which version of each table of plugins a release of NCCL reads, as its src/plugin has them;
// test/abi/nccl-version-matrix.csv lists all releases.
#pragma once

#include <string>

namespace riffle::tools {

// The newest that it reads, 0: none. NET's is COLLNET's.
struct TableVersions {
  int net = 0, tuner = 0, profiler = 0, env = 0;
};

// `nccl`: a release's version code; 0: not known, then those of the newest release.
TableVersions tables_read(int nccl);

// "NET and COLLNET v11, TUNER v5, PROFILER v5, ENV v1"
std::string to_text(const TableVersions& tables);

}  // namespace riffle::tools
