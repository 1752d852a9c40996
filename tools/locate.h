// Where the parts of an installation or of a build tree lie, seen from this executable.
#pragma once

#include <string>

namespace riffle::tools {

std::string executable_folder();
// The folder of the bench profiles.
std::string profile_folder();
// The folder of riffle_bench_gloo and riffle_bench_mpi.
std::string peer_program_folder();
// libnccl-net-riffle.so beside this command; empty: not there.
std::string plugin_file();
std::string plugin_folder();

}  // namespace riffle::tools
