// RIFFLE_RECORD as the file of this process.
#pragma once

#include <string>

#include "topology/base/status.h"

namespace riffle {

// %h host name, %p process, %r rank (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK; "0"
// without any), %j Slurm job, %% a percent sign. A folder (it exists, or the text ends in /) gets
// riffle.%h.%p.jsonl; a pattern in which neither %p nor %r stands gets .%h.%p added, so that no two
// processes write one file. An error names the unknown letter.
Result<std::string> record_path(const std::string& pattern);

}  // namespace riffle
