// What a plan set costs: the numbers behind predict().
//
//   time = max(busiest link, busiest node's messages,   steady state, averaged over the lanes
//              rings one chunk after the other)
//        + fill       what the first chunk takes longer, because its steps come one after the other
//        + latency    of the steps of one chunk
//        + bubbles    a part of the steady state per level beyond the first, more of a small
//                     buffer if nodes send unevenly
//
// It ranks plans and foretells times; it is not a simulator: max-min fair sharing, credits and the
// order of frames are not in it. Small chunks make the fill short and the headers and messages
// many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/plan/fabric_view.h"
#include "topology/plan/group_plan.h"
#include "topology/plan/loads.h"

namespace riffle {

// Reduce-scatter or all-gather of one level of one lane.
struct PhaseCost {
  double time_us = 0;   // of its busiest link, per byte of the buffer
  double messages = 0;  // the busiest node's, per chunk
  double shard = 0;     // the largest, as a part of the buffer
  double relays = 0;    // hops that a fragment waits for beyond those that time_us is for
};

struct PlanCost {
  explicit PlanCost(const FabricView& view) : loads(view) {}
  Loads loads;  // of all phases of all levels of all lanes
  double lanes = 1, levels = 1;
  double stages = 1;      // levels, and the relays in them
  double unevenness = 0;  // of what nodes send: 0 if all alike, towards 1 if not at all
  std::vector<PhaseCost> phases;
  double latency_us = 0;  // of all steps of a chunk
  // Where chunks do not overlap (GroupExchange::overlaps_chunks, rings): what a chunk takes from
  // its first partial sum to its last, per byte of it and for the latency.
  double tour_us = 0, tour_latency_us = 0;
};
PlanCost cost_of(const FabricView& view, const PlanSet& plans);

struct Prediction {
  double time_us = 0;
  std::string limit;              // the busiest link, e.g. "uplink of rack r1", or what else limits
  std::uint32_t chunk_bytes = 0;  // that the time is for
  double empty_us = 0;  // in which stages are empty as a job has too few such chunks under way
};
// With chunks of the given size ...
Prediction predict(const FabricView& view, const PlanCost& cost, std::uint64_t bytes,
                   std::uint32_t chunk_bytes, std::int64_t message_ns);
// ... or of the best.
Prediction predict(const FabricView& view, const PlanCost& cost, std::uint64_t bytes,
                   std::int64_t message_ns);

// PlanSet::busy_bytes: how much in the works at once keeps the network busy (Little's law: rate
// times latency), given the chunks that sums are cut into at most and PlanSet::windowed_chunks().
// 0 where that holds nothing back of a sum of PlanSet::kWindowSum.
std::uint32_t busy_bytes(const FabricView& view, const PlanCost& cost, std::uint32_t chunk_bytes,
                         std::size_t windowed_chunks, std::int64_t message_ns);

}  // namespace riffle
