// One of the schedules that a choice is made from (choose.cc): what it costs and whom it brings
// together. How well it mixes says contraction.h.
#pragma once

#include <cstdint>

#include "topology/plan/fabric_view.h"
#include "topology/plan/schedules/cycle.h"
#include "topology/plan/schedules/schedules.h"

namespace riffle {

struct ScheduleProposal {
  Cycle cycle;
  ScheduleCandidate candidate;
  std::uint32_t chunk_bytes = 0;
  bool is_examined = false;
};

// Fills in the candidate's times for calls of options.bytes, and the chunk size with which they are
// shortest. `table` is the one of the proposal's cycle.
void predict_time(const FabricView& view, const ScheduleTable& table,
                  const ScheduleOptions& options, ScheduleProposal& proposal);

// The least mean group size over nodes and lanes, and the longest time without a meeting.
struct Company {
  double least_size = 0;
  int longest_alone = 0;
};
Company company_of(const Cycle& cycle, int nodes);

}  // namespace riffle
