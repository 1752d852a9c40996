// A trace as JSON in Chrome's trace-event format, which Perfetto (ui.perfetto.dev) and
// chrome://tracing read: a process per node, a thread per row (rows.h), times in us from the first
// event on; "otherData" says of what and how exactly.
#pragma once

#include <ostream>
#include <vector>

#include "tools/trace/clocks.h"
#include "tools/trace/job_trace.h"

namespace riffle::tools::trace {

// `frames` get an arrow from where they were sent to where they came; none: there are no arrows.
void write_chrome(const JobTrace& job, const Clocks& clocks, const std::vector<Delivery>& frames,
                  std::ostream& to);

}  // namespace riffle::tools::trace
