#include "topology/plan/nccl_model.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "topology/plan/candidate.h"
#include "topology/plan/fabric_view.h"
#include "topology/plan/loads.h"

namespace riffle {
namespace {

constexpr double kBaseUs = 8.4;       // baseLatencies
constexpr double kHopUs = 14;         // hwLatencies of NCCL_HW_NET
constexpr double kRingPlateau = 1.4;  // "Plateau effect of ring", for Ampere and later
constexpr double kTreeShare = 0.92;   // of the links' rate that trees make use of
// treeCorrectionFactor: powers of two from 64 bytes on.
constexpr std::array<double, 23> kTreeCorrection = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                                    .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9};

double tree_efficiency(std::uint64_t bytes) {
  const auto power =
      static_cast<std::size_t>(std::bit_width(std::max(bytes >> 6, std::uint64_t{1})) - 1);
  return kTreeShare * (power < kTreeCorrection.size() ? kTreeCorrection[power] : 1);
}

// NCCL's figure holds for the networks that it is made for.
double hop_us(const Fabric& fabric, const std::vector<int>& order) {
  double sum_us = 0;
  int before = order.back();
  for (const int node : order) {
    sum_us += static_cast<double>(fabric.latency_us_between(before, node));
    before = node;
  }
  return std::max(kHopUs, sum_us / fabric.size());
}

Loads loads_of_all(const FabricView& view, const GroupPlan& plan) {
  Loads loads(view);
  for (const Level& level : plan.levels) {
    for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
      loads += loads_of(view, level, phase);
    }
  }
  return loads;
}

double moved(const Loads& loads) {
  std::uint64_t most = 0;
  for (const auto* side : {&loads.node_out, &loads.node_in}) {
    for (const Load& load : *side) most = std::max(most, load.units);
  }
  return static_cast<double>(most) / kShareUnits;
}

}  // namespace

std::array<NcclAlgorithm, 2> nccl_algorithms(const Fabric& fabric, std::uint64_t bytes,
                                             std::span<const int> order) {
  const FabricView view(fabric);
  std::vector<int> by_rank(order.begin(), order.end());
  if (order.empty()) {
    by_rank.resize(static_cast<std::size_t>(fabric.size()));
    std::iota(by_rank.begin(), by_rank.end(), 0);
  }
  const LaneOrder lane{{by_rank}};
  const double hop = hop_us(fabric, by_rank);
  const auto size = static_cast<double>(bytes);

  const Loads ring = loads_of_all(view, propose_ring(view)[0].build(lane));
  const double ring_hops = 2 * (fabric.size() - 1);
  const Loads trees = loads_of_all(view, propose_double_tree(view)[0].build(lane));
  const double tree_hops = 2 * (std::bit_width(static_cast<unsigned>(fabric.size())) - 1);
  return {
      {{"ring", slowest(view, ring, size, 0).time_us + kBaseUs + kRingPlateau * ring_hops * hop,
        moved(ring)},
       {"tree",
        slowest(view, trees, size, 0).time_us / tree_efficiency(bytes) + kBaseUs + tree_hops * hop,
        moved(trees)}}};
}

}  // namespace riffle
