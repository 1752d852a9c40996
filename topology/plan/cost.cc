// The cost model behind predict(). It ranks plans; it is not a simulator:
//
//   time = max(busiest link, busiest node's messages)   steady state, averaged over the lanes
//        + fill       what the first chunk waits because its steps cannot overlap with others
//        + bubbles    a small price per level beyond the first
//        + latency    steps and messages of one chunk, one after the other
//
// All sums of units are integers; the few floating-point operations are in a fixed order, and the
// library is compiled without contraction, so that every IEEE machine ranks alike.
#include <algorithm>

#include "topology/plan/loads.h"
#include "topology/plan/planner.h"

namespace riffle {
namespace {

// Assumptions about the engine, to the nearest order of magnitude; bench/ measures the outcome.
constexpr double kMessageUs = 5;                 // a frame's system calls and wake-ups, per side
constexpr std::uint64_t kChunkBytes = 1 << 20;   // messages are paid once per chunk
constexpr std::uint64_t kFillBytes = 256 << 10;  // in flight before the next step can start
constexpr std::uint64_t kBubbleParts = 16;       // a level costs at most 1/16 of a small message

int steps_of(const Level& level) {
  std::size_t steps = 0;
  for (const Group& g : level.groups) {
    steps = std::max(steps, g.pattern == Pattern::kRing ? 2 * (g.members.size() - 1) : 2);
  }
  return static_cast<int>(steps);
}

double most_messages(const Loads& loads) {
  return static_cast<double>(*std::max_element(loads.messages.begin(), loads.messages.end()));
}

}  // namespace

Candidate predict(const Fabric& fabric, const PlanSet& plans, std::uint64_t bytes) {
  const FabricView view(fabric);
  const double lanes = static_cast<double>(plans.lanes.size());
  Loads total(view);
  double serial_us = 0;   // all lanes: every step waits for the slowest link of the one before
  double latency_us = 0;  // all lanes
  std::size_t levels = 0;
  for (const GroupPlan& plan : plans.lanes) {
    levels = std::max(levels, plan.levels.size());
    for (const Level& level : plan.levels) {
      double messages = 0;
      for (Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
        const Loads loads = loads_of(view, level, phase);
        serial_us += slowest(view, loads, bytes).time_us;
        messages += most_messages(loads);
        total += loads;
      }
      latency_us += steps_of(level) * static_cast<double>(fabric.latency_us);
      latency_us += messages * kMessageUs;
    }
  }
  Slowest steady = slowest(view, total, bytes);
  const double link_us = steady.time_us / lanes;
  const double chunks = static_cast<double>(bytes) / kChunkBytes;
  const double message_us = chunks * most_messages(total) / lanes * kMessageUs;
  const double steady_us = std::max(link_us, message_us);

  const double size = static_cast<double>(std::max<std::uint64_t>(bytes, 1));
  const double fill = static_cast<double>(std::min(bytes, kFillBytes)) / size;
  const double bubble = static_cast<double>(std::min(bytes / kBubbleParts, kFillBytes)) / size;
  const double waits_us = fill * std::max(0.0, serial_us / lanes - steady_us) +
                          bubble * link_us * (levels > 1 ? static_cast<double>(levels - 1) : 0.0) +
                          latency_us / lanes;

  std::string limit = link_us >= message_us ? std::move(steady.link) : "messages per node";
  if (waits_us > steady_us) limit = "latency";
  return {plans.name, steady_us + waits_us, std::move(limit)};
}

}  // namespace riffle
