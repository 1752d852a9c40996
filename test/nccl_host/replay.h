// Plays the calls of a recorded run into a plugin, with real buffers and checked results.
//
// Every process plays one trace file. Calls that NCCL made on a progress thread are made on a
// thread of their own, in the recorded order; all others in the recorded order on the calling
// thread. A call waits for the objects it uses; a teardown waits for the recorded transfers before
// it.
//
// COLLNET objects span the processes (a trace of rank 0 or 1 stands for every rank, their sequences
// are alike). NET connections end in the same process, in a mirror that receives what the trace
// sends and sends what it received: so the peers that were not recorded are not needed.
//
// What is not played: profiler calls; the call that returned an error (the plugin's own would
// succeed: the thread stops there, as NCCL's did, and the abort follows); refusals (the plugin has
// its own); connect in k-connect-fails (a set-up failure on purpose of the recording plugin).
#pragma once

#include "lab/nccl_host/bootstrap.h"
#include "lab/nccl_host/tables/plugin_library.h"
#include "test/nccl_host/trace_file.h"

namespace riffle::host {

// For the two halves of a split, the colour is the rank modulo 2.
Status replay(PluginLibrary& library, const Trace& trace, Bootstrap& all);

}  // namespace riffle::host
