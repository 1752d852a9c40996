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

// Where the loader and NCCL get the shared object from.
struct PluginPlace {
  std::string file;          // empty: not beside the command
  bool is_searched = false;  // the loader looks in its folder anyway: a system's own
  bool has_links = true;     // libnccl-tuner-riffle.so and the others; a wheel holds no links
};

// code 0: the set that suits every release. Without links variables name the file itself.
std::vector<Export> needed_exports(int code, const PluginPlace& place);
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
// `release` as parse_release takes it. A file that the variables cannot name is an error.
Result<JobEnvironment> job_environment(const std::string& release, const PluginPlace& place);
std::string title_of(const JobEnvironment& job);

}  // namespace riffle::tools
