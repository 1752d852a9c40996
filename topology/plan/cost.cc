#include "topology/plan/cost.h"

#include <algorithm>
#include <utility>

#include "topology/plan/planner.h"

// All sums of units are integers; the few floating-point operations are in a fixed order, and the
// library is compiled without contraction, so that every IEEE machine ranks alike.
namespace riffle {
namespace {

constexpr std::uint32_t kFullChunkBytes = 1 << 20;  // RIFFLE_CHUNK_BYTES
constexpr std::uint32_t kLeastChunkBytes = 16 << 10;
constexpr double kHeaderBytes = 64;
constexpr double kFragmentBytes = 128 << 10;  // RIFFLE_PIECE_BYTES
// Levels wait for each other in ways that counting does not see. The simulator shows 0 to 2 % of
// the links' time for two levels; with three to six of them, 11 to 17 %, as nodes get out of step:
// where more flows meet, each gets less, and others wait for it.
// Hops of a tree that passes fragments on wait for each other in the same way: 64 even nodes in two
// trees take 11 % more than counting says at 16 MiB.
double bubble_of(double levels) {
  return std::min(0.02 * (levels - 1) + 0.08 * std::max(0.0, levels - 2), 0.12);
}
// Where nodes send unevenly, flows that carry little run ahead of those that carry much by up to
// what a node has under way at once, at every level beyond the first: so much of that time is lost
// at the start and the end. Fitted to a few grids
// of uneven nodes at 1 MiB, which the model took for 11 to 26 % faster than the simulator did.
constexpr double kLag = 0.4;
constexpr double kSendBytes = 1 << 20;  // EngineOptions::send_bytes
constexpr double kBetter = 0.995;       // a smaller chunk must gain more than noise
// NCCL has no more than its eight steps of 256 KiB a channel under way (NCCL_STEPS, 2.12 to 2.30).
// With few chunks at many stages some stage is empty at times, which counting does not see either:
// for each such window a part of what it takes one chunk to pass all stages alone. Fitted to plans
// of two levels on emulated networks (100 to 400 Mbit/s): chunks of 32 instead of 256 KiB took 0.85
// times as long where one node of each rack adds up for all others, 128 KiB 0.98 where nodes are
// alike; some flat plans gained, others lost. It tells sizes of chunks apart, not plans.
constexpr double kWindowBytes = 2 << 20;
constexpr double kRefilled = 0.2;
// Nodes lag behind each other by that much: a thread waits for its processor, a frame in a queue.
constexpr double kLagUs = 3000;

// The most hops one way of a group in the level that `counts`.
template <class Counts>
int depth_of(const Level& level, Counts counts) {
  int depth = 0;
  for (const Group& g : level.groups) {
    const GroupExchange& exchange = exchange_of(g.pattern);
    if (counts(exchange)) {
      depth = std::max(depth, exchange.depth(static_cast<int>(g.members.size())));
    }
  }
  return depth;
}
bool any(const GroupExchange& /*exchange*/) { return true; }
bool overlaps(const GroupExchange& exchange) { return exchange.overlaps_chunks(); }
bool does_not_overlap(const GroupExchange& exchange) { return !exchange.overlaps_chunks(); }

// Between the members of a level's groups, one way: the longest.
double latency_us_in(const Fabric& fabric, const Level& level) {
  std::int64_t longest = 0;
  for (const Group& g : level.groups) {
    for (const int member : g.members) {
      longest = std::max(longest, fabric.latency_us_between(g.members.front(), member));
    }
  }
  return static_cast<double>(longest);
}

double largest_shard(const Level& level) {
  Share largest = 0;
  for (const Group& g : level.groups) {
    for (std::size_t j = 0; j < g.members.size(); ++j) {
      largest = std::max(largest, g.cuts[j + 1] - g.cuts[j]);
    }
  }
  return static_cast<double>(largest) / kShareUnits;
}

// What a chunk takes beyond its part of the steady state, per lane.
struct Fill {
  double first_us = 0;  // the first one, as the next ones follow it closely
  double alone_us = 0;  // one that no other follows
};

Fill fill_of(const PlanCost& cost, double chunk, double steady_us, double message_us) {
  double serial_us = 0, first_us = 0, relays_us = 0;
  for (const PhaseCost& p : cost.phases) {
    const double time_us = (p.time_us * chunk + p.messages * message_us) / cost.lanes;
    const double fragment_us = time_us / std::max(1.0, p.shard * chunk / kFragmentBytes);
    serial_us += time_us;
    first_us += fragment_us;
    relays_us += p.relays * fragment_us;
  }
  if (steady_us >= serial_us) return {relays_us, 0};
  return {relays_us + first_us * (1 - steady_us / serial_us), serial_us - steady_us};
}

// 0 if all nodes send alike, 1 if one sends next to nothing of what another does.
double unevenness(const Loads& loads) {
  std::uint64_t least = ~std::uint64_t{0}, most = 1;
  for (const Load& load : loads.node_out) {
    least = std::min(least, load.units);
    most = std::max(most, load.units);
  }
  return 1 - static_cast<double>(least) / static_cast<double>(most);
}

}  // namespace

PlanCost cost_of(const FabricView& view, const PlanSet& plans) {
  constexpr double kBytes = 1 << 30;  // so that times are well above rounding
  PlanCost cost(view);
  cost.lanes = static_cast<double>(plans.lanes.size());
  for (const GroupPlan& plan : plans.lanes) {
    cost.levels = std::max(cost.levels, static_cast<double>(plan.levels.size()));
    double tour_us = 0, tour_latency_us = 0, stages = 0;
    for (const Level& level : plan.levels) {
      const int hops = depth_of(level, does_not_overlap);
      // The links' time in one phase is for the first hop, or for all of a tour.
      const int relays = std::max(0, depth_of(level, overlaps) - 1);
      stages += 1 + relays;
      const double latency_us = latency_us_in(view.fabric(), level);
      for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
        const Loads loads = loads_of(view, level, phase);
        cost.phases.push_back({slowest(view, loads, kBytes, 0).time_us / kBytes,
                               static_cast<double>(loads.most_frames()), largest_shard(level),
                               static_cast<double>(relays)});
        cost.loads += loads;
      }
      if (hops > 0) {
        // The busiest link of the way down passes one shard on at each hop.
        tour_us = std::max(tour_us, cost.phases[cost.phases.size() - 2].time_us);
        tour_latency_us = std::max(tour_latency_us, hops * latency_us);
      }
      cost.latency_us += 2 * depth_of(level, any) * latency_us / cost.lanes;
    }
    cost.stages = std::max(cost.stages, stages);
    cost.tour_us += tour_us / cost.lanes;
    cost.tour_latency_us += tour_latency_us / cost.lanes;
  }
  cost.unevenness = unevenness(cost.loads);
  return cost;
}

Prediction predict(const FabricView& view, const PlanCost& cost, std::uint64_t bytes,
                   std::uint32_t chunk_bytes, std::int64_t message_ns) {
  const double size = static_cast<double>(bytes);
  const double message_us = static_cast<double>(message_ns) / 1000;
  const double chunk = std::min(size, static_cast<double>(chunk_bytes));
  const double chunks = chunk > 0 ? size / chunk : 1;
  Slowest busiest =
      slowest(view, cost.loads, size / cost.lanes, chunks * kHeaderBytes / cost.lanes);
  const double messages_us =
      chunks * static_cast<double>(cost.loads.most_frames()) / cost.lanes * message_us;
  const double tours_us = size * cost.tour_us + chunks * cost.tour_latency_us;
  const double steady_us = std::max({busiest.time_us, messages_us, tours_us});
  const double ahead = size > 0 ? std::min(1.0, kSendBytes / size) : 1;
  const Fill fill = fill_of(cost, chunk, steady_us / chunks, message_us);
  const double windows = std::max(0.0, size / kWindowBytes - 1);
  const double waits_us =
      fill.first_us + cost.latency_us +
      (bubble_of(cost.stages) + kLag * cost.unevenness * ahead * (cost.levels - 1)) *
          busiest.time_us;
  std::string limit =
      busiest.time_us >= messages_us ? std::move(busiest.link) : "processing of messages";
  if (waits_us > steady_us || tours_us >= steady_us) limit = "latency";
  const double empty_us = cost.levels > 1 ? kRefilled * windows * fill.alone_us : 0;
  return {steady_us + waits_us, std::move(limit), chunk_bytes, empty_us};
}

Prediction predict(const FabricView& view, const PlanCost& cost, std::uint64_t bytes,
                   std::int64_t message_ns) {
  Prediction best = predict(view, cost, bytes, kFullChunkBytes, message_ns);
  for (std::uint32_t size = kFullChunkBytes; size > kLeastChunkBytes; size /= 2) {
    for (const std::uint32_t chunk : {size / 4 * 3, size / 2}) {
      Prediction next = predict(view, cost, bytes, chunk, message_ns);
      if (next.time_us + next.empty_us < (best.time_us + best.empty_us) * kBetter) {
        best = std::move(next);
      }
    }
  }
  return best;
}

std::uint32_t busy_bytes(const FabricView& view, const PlanCost& cost, std::uint32_t chunk_bytes,
                         std::size_t windowed_chunks, std::int64_t message_ns) {
  constexpr std::uint64_t kLargeBytes = 64 << 20;
  const auto us = [&](std::uint64_t bytes) {
    return predict(view, cost, bytes, chunk_bytes, message_ns).time_us;
  };
  const double bytes =
      kLargeBytes / us(kLargeBytes) * (us(PlanSet::kWindowCall / windowed_chunks) + kLagUs);
  return bytes < PlanSet::kWindowSum ? static_cast<std::uint32_t>(bytes) : 0;
}

Candidate predict(const Fabric& fabric, const PlanSet& plans, std::uint64_t bytes,
                  std::int64_t message_ns) {
  const FabricView view(fabric);
  const std::uint32_t chunk = plans.chunk_bytes == 0 ? kFullChunkBytes : plans.chunk_bytes;
  Prediction p = predict(view, cost_of(view, plans), bytes, chunk, message_ns);
  return {plans.name, p.time_us, std::move(p.limit)};
}

}  // namespace riffle
