// Who a node waited for: times in which all contributions to a sum but one node's were there, its
// own among them, and times in which all results of a chunk but one node's were.
//
// What is derived: the sums that a node made and the frames that came tell it (span_log.h); nothing
// is measured for it while the job runs.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/telemetry/span_log.h"

namespace riffle::tools::trace {

struct Wait {
  int peer = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;  // on the node's clock
  std::uint64_t times = 1;                 // sums and results that waited, put together
};

// By begin; those for one peer do not overlap. `spans`: of node `rank`.
std::vector<Wait> waits_of(const std::vector<Span>& spans, int rank);

}  // namespace riffle::tools::trace
