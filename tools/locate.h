// Where the parts of an installation or of a build tree lie, seen from this executable.
#pragma once

#include <string>

#include "tools/env/nccl_environment.h"

namespace riffle::tools {

std::string executable_folder();
// The folder of the bench profiles.
std::string profile_folder();
// The folder of riffle_bench_gloo and riffle_bench_mpi.
std::string peer_program_folder();
// libnccl-net-riffle.so beside this command.
PluginPlace plugin_place();

}  // namespace riffle::tools
