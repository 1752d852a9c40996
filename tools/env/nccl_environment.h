// Which variables a job must export so that its NCCL release loads Riffle and uses it. Facts about
// the releases: docs/nccl-contract.md, "Loading rules".
#pragma once

#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::tools {

// "2.27.5", "2.27" (its first release) or NCCL_VERSION_CODE ("22705"), as a version code; an empty
// text is 0, for every release.
Result<int> parse_release(const std::string& text);
std::string release_name(int code);

struct Export {
  std::string name, value;
  std::string why;
  bool is_list = false;  // of folders, by colons: the value goes in front of what is there
};
// What the variable becomes where it is `present`; nullptr: it is not set.
std::string value_over(const Export& e, const char* present);

// code 0: the set that suits every release. `folder`: of the shared object; empty: already found.
std::vector<Export> needed_exports(int code, const std::string& folder);
// What no variable can change in that release.
std::vector<std::string> limits_of(int code);

inline constexpr char kPluginMissing[] =
    "libnccl-net-riffle.so is not beside this command: its folder must be in LD_LIBRARY_PATH";

// All that a job needs and what is to be known of it, as the commands show it.
struct JobEnvironment {
  int code = 0;  // of the NCCL release; 0: for every release
  std::vector<Export> exports;
  std::vector<std::string> notes;
  std::string command_folder;  // where `riffle` lies, for modules
};
// `release` as parse_release takes it. A folder that LD_LIBRARY_PATH cannot name is an error.
Result<JobEnvironment> job_environment(const std::string& release, const std::string& folder);
std::string title_of(const JobEnvironment& job);

}  // namespace riffle::tools
