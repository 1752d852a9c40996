// Which library RIFFLE_NET asks for, by NCCL's own rules for NCCL_NET_PLUGIN (2.30,
// src/plugin/plugin_open.cc). Text in, text out: nothing is opened here. Any thread.
#pragma once

#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::nccl_net {

struct LibraryChoice {
  std::string name;         // RIFFLE_NET: a name, a path or `next`; empty: none is wanted
  std::string plugin_list;  // NCCL_NET_PLUGIN, for `next`
};

// True for the values of RIFFLE_NET that mean a library: all but empty, `auto` and `tcp`.
bool names_library(const std::string& riffle_net);

// The name or path that the choice comes to: `next` is what the list names after `own_file`, the
// path of Riffle's shared object. An error says what the list lacks.
Result<std::string> library_name(const LibraryChoice& choice, const std::string& own_file);

// What to open for a name, in turn: the name as it is, then libnccl-net-NAME.so unless it is a path
// or has the form lib....so.
std::vector<std::string> files_of_name(const std::string& name);

}  // namespace riffle::nccl_net
