// The job of a recorded run, read from its header, and the same job on the stand-in.
#pragma once

#include "lab/nccl_host/communicator.h"
#include "test/nccl_host/recording_tables.h"
#include "test/nccl_host/trace_file.h"

namespace riffle::host {

// Why the stand-in cannot make the calls of a scenario, or empty. docs/testing.md shows the same
// table.
std::string not_reproduced_because(const std::string& scenario);

// Runs the job over recording tables and returns what they saw on this rank.
Result<Recording> run_job(const Trace& trace, Bootstrap& bootstrap);

// What real NCCL did, in the same form.
Recording recorded(const Trace& trace);

}  // namespace riffle::host
