// What the clocks of nodes differ by, from the frames between them.
//
// A frame cannot come before it was sent: if it left node a at time s of a's clock and its header
// was at b at time r of b's, b's clock is ahead of a's by at most r - s. The least of all frames
// from a to b is one bound, that of frames from b to a one for the other direction, as in NTP; and
// bounds add up along any way between two nodes, so that a ring, where nodes never answer each
// other, has them too. The tightest ones of a node against the reference are the shortest ways
// there and back (Bellman and Ford, from and to one node; a few passes, as ways are short). The
// estimate lies in the middle, half the distance is its uncertainty, and no frame of the result
// comes before it was sent.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/trace/job_trace.h"

namespace riffle::tools::trace {

// A frame that was traced at both ends.
struct Delivery {
  int from = 0, to = 0;
  const Span* out = nullptr;
  const Span* in = nullptr;
};
// The spans are those of `job`, which must outlive them.
std::vector<Delivery> deliveries(const JobTrace& job);

struct NodeClock {
  std::int64_t ahead_ns = 0;  // of the reference's clock
  // Most that this is wrong by, as long as clocks run equally fast; none: no frames tell, and it is
  // the nodes' own time of day that is compared.
  std::optional<std::int64_t> uncertainty_ns;
};

struct Clocks {
  int reference = 0;             // the first node of which there is a trace
  std::vector<NodeClock> nodes;  // by rank
  // Above 0: clocks did not run equally fast, and frames come so much before they were sent.
  std::int64_t contradiction_ns = 0;
};
Clocks compare_clocks(const JobTrace& job, const std::vector<Delivery>& frames);
// Of a simulation: all nodes have one clock.
Clocks same_clock(int nodes);

}  // namespace riffle::tools::trace
