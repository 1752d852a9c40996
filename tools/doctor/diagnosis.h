// Everything that `riffle doctor` looks at on one machine.
#pragma once

#include <string>

#include "tools/doctor/verdicts.h"
#include "tools/env/nccl_environment.h"
#include "topology/base/status.h"

namespace riffle::tools {

struct DoctorQuestion {
  PluginPlace beside;     // the shared object that lies beside this command
  std::string release;    // of NCCL; empty: that of libnccl.so.2, if there is one
  bool has_loop = false;  // also a whole all-reduce over loopback (loop.h)
};

struct Diagnosis {
  Verdicts verdicts;
  std::string nccl;     // its release; empty: not known
  std::string plugin;   // the shared object's path; empty: there is none
  std::string network;  // what NET goes over, which all nodes must have alike
  std::string mtu;      // of its NICs (NicsInUse)
};

// Once per process, on its only thread: takes NCCL's files of settings into the environment, and
// silences the log. An error: the release is none.
Result<Diagnosis> diagnose(const DoctorQuestion& question);

}  // namespace riffle::tools
