// NCCL's own variables: those that a job needs, and those that keep Riffle out.
#pragma once

#include <string_view>

#include "tools/doctor/job_variables.h"
#include "tools/env/nccl_environment.h"

namespace riffle::tools {

// `nccl`: a release's version code, 0: for all. `has_collectives`: all-reduces are meant to be
// Riffle's, not NCCL's over another library. Whether plugins are found says loading.h.
void check_nccl_variables(int nccl, const PluginPlace& beside, bool has_collectives,
                          const JobVariables& variables, Verdicts* verdicts);

// Whether NCCL_ALGO or NCCL_PROTO lets all-reduces have one of the `wanted`, written in lower case,
// each of which may go on (collnet: CollNetChain). NCCL's syntax: "a,b", "^a,b" for all but these,
// "allreduce:a;broadcast:b" by collective. Source: NCCL 2.28.9, src/graph/tuning.cc, parseList().
bool allows(std::string_view rule, std::string_view wanted);

}  // namespace riffle::tools
