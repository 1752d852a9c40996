#include "plugin/collective/engine/plan_sizes.h"

#include <algorithm>
#include <bit>

#include "plugin/collective/engine/send_window.h"
#include "topology/plan/loads.h"

namespace riffle {

bool sums_depend_on_owner(const std::vector<GroupPlan>& lanes) {
  for (const GroupPlan& plan : lanes) {
    for (const Level& level : plan.levels) {
      for (const Group& g : level.groups) {
        if (!exchange_of(g.pattern).sums_in_member_order()) return true;
      }
    }
  }
  return false;
}

std::size_t small_grain(const std::vector<GroupPlan>& lanes, std::size_t chunk_bytes) {
  if (sums_depend_on_owner(lanes) || chunk_bytes < 2 * kSmallChunk) return kGrainBytes;
  std::uint64_t least = kShareUnits;
  for (const GroupPlan& plan : lanes) {
    for (const Level& level : plan.levels) {
      for (const Group& g : level.groups) {
        for (std::size_t j = 0; j < g.members.size(); ++j) {
          const std::uint64_t shard = g.cuts[j + 1] - g.cuts[j];
          if (shard > 0) least = std::min(least, shard);
        }
      }
    }
  }
  const std::uint64_t half = least * chunk_bytes / kShareUnits / 2;
  return std::clamp<std::size_t>(std::bit_floor(half), kGrainBytes, kSmallGrain);
}

std::size_t send_window_bytes(const PlanSet& plans, int rank, std::size_t most_bytes) {
  constexpr double kEven = 0.02;
  const int nodes = plans.lanes[0].nodes;
  std::vector<std::uint64_t> units(nodes);
  for (const GroupPlan& plan : plans.lanes) {
    for (const Level& level : plan.levels) {
      for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
        const Loads loads = loads_of(nodes, level, phase);
        for (int n = 0; n < nodes; ++n) units[n] += loads.node_out[n].units;
      }
    }
  }
  const auto [least, most] = std::minmax_element(units.begin(), units.end());
  if (*most == 0) return SendWindow::kNoLimit;
  const double unevenness = 1 - static_cast<double>(*least) / static_cast<double>(*most);
  if (unevenness < kEven) return SendWindow::kNoLimit;
  const double part = static_cast<double>(units[rank]) / static_cast<double>(*most);
  return static_cast<std::size_t>(static_cast<double>(most_bytes) * part / unevenness);
}

std::size_t most_frames(const Program& program, std::size_t chunk_bytes,
                        std::size_t fragment_bytes) {
  std::size_t frames = 0;
  for (const LocalGroup& local : program.groups) {
    const auto& cuts = local.group.cuts;
    const auto fragments = [&](int member) {
      return max_fragments(cuts[member], cuts[member + 1], chunk_bytes, fragment_bytes);
    };
    for (int shard = 0; shard < local.size(); ++shard) {
      const std::size_t sends = (shard != local.me) + local.routes[shard].sum_to.size();
      frames += sends * fragments(shard);
    }
  }
  return frames;
}

}  // namespace riffle
