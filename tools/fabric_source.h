// A fabric named on the command line: a file, or a bench profile.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "topology/base/status.h"
#include "topology/fabric/fabric.h"

namespace riffle::tools {

struct FabricSource {
  std::string file;                // as for RIFFLE_FABRIC; or
  std::string profile;             // one of these two
  std::vector<std::string> nodes;  // of the file, in rank order; empty: all of them, in its order
  bool only_known = false;  // `nodes` that the file lacks are an error, not of the default rate
};

// --fabric, --nodes and --profile; `source` must live as long as the command.
void add_options(CLI::App& command, FabricSource& source);

// What the file gives cause to remark goes to stderr, after `command`.
Result<Fabric> read_fabric(const FabricSource& source, const char* command);

}  // namespace riffle::tools
