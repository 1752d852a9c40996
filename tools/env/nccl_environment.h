// Which variables a job must export so that its NCCL release loads Riffle and uses it. Facts about
// the releases: docs/nccl-contract.md, "Loading rules".
#pragma once

#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::tools {

// "2.27.5", "2.27" (its first release) or NCCL_VERSION_CODE ("22705"), as a version code.
Result<int> parse_release(const std::string& text);
std::string release_name(int code);

struct Export {
  std::string name, value;
  std::string why;
};

// code 0: the set that suits every release. `folder`: of the shared object; empty: already found.
std::vector<Export> needed_exports(int code, const std::string& folder);
// What no variable can mend in that release.
std::vector<std::string> limits_of(int code);

}  // namespace riffle::tools
