// Files that every process of a job writes for itself (RIFFLE_RECORD, RIFFLE_LOG_FILE): from a
// pattern to the file of this process. Any thread.
#pragma once

#include <string>

#include "topology/base/status.h"

namespace riffle {

// %h host name, %p process, %r rank (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK; "0"
// without any), %j Slurm job, %% a percent sign. A folder (it exists, or the text ends in /) gets
// riffle.%h.%p.SUFFIX; a pattern in which neither %p nor %r stands gets .%h.%p added, so that no
// two processes write one file. An error names the knob and the unknown letter.
Result<std::string> file_of_process(const std::string& knob, const std::string& pattern,
                                    const std::string& suffix);

// Digits; empty outside of Slurm.
std::string slurm_job_id();

}  // namespace riffle
