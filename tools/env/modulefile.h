// A job's variables as a module: of Lmod (Lua), of Environment Modules (Tcl). Loading changes
// nothing but variables, by setenv and by prepending to lists, both of which unloading reverses.
#pragma once

#include <string>

#include "tools/env/nccl_environment.h"

namespace riffle::tools {

std::string lua_modulefile(const JobEnvironment& job);
std::string tcl_modulefile(const JobEnvironment& job);

}  // namespace riffle::tools
