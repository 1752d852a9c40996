#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "topology/plan/candidate.h"
#include "topology/plan/nested.h"
#include "topology/plan/shares.h"
#include "topology/plan/two_level.h"

namespace riffle {
namespace {

// Uneven nodes that wait for each other at every level may lose more than the model knows. Over the
// direct plan on 12 nodes, told the network, they took 1.10, 1.02 and 0.98 times as long where 1.02
// to 1.03 were predicted (random:25, 62, 44); where rates were found live, 1.08 to 1.11.
constexpr double kWeightedMustGain = 1.03;

constexpr std::size_t kMaxDimensions = 4;  // beyond that halving-doubling takes over
constexpr std::size_t kMaxGrids = 16;

using Factors = std::vector<int>;

// All ways to write n as a product of non-rising factors of at least 2, fewest factors first.
void factorise(int n, int largest, std::size_t dimensions, Factors& so_far,
               std::vector<Factors>& found) {
  if (n == 1) {
    found.push_back(so_far);
    return;
  }
  if (dimensions == 0) return;
  for (int f = std::min(n, largest); f >= 2; --f) {
    if (n % f != 0) continue;
    so_far.push_back(f);
    factorise(n / f, f, dimensions - 1, so_far, found);
    so_far.pop_back();
  }
}

std::vector<Factors> factorisations(int n) {
  std::vector<Factors> found;
  Factors so_far;
  factorise(n, n, kMaxDimensions, so_far, found);
  // Among grids of the same dimension the one with the smallest groups first: the nearest to a
  // cube.
  std::stable_sort(found.begin(), found.end(), [](const Factors& a, const Factors& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return found;
}

// Racks of equal size are filled by the first dimensions, which carry most, before any group
// crosses.
std::vector<Factors> factors_of(const FabricView& view) {
  const auto& racks = view.racks();
  const std::size_t members = racks[0].members.size();
  const bool alike = std::all_of(racks.begin(), racks.end(),
                                 [&](const RackView& r) { return r.members.size() == members; });
  if (!alike || racks.size() == 1 || members == 1) return factorisations(view.size());
  std::vector<Factors> all;
  for (const Factors& inside : factorisations(static_cast<int>(members))) {
    for (const Factors& across : factorisations(static_cast<int>(racks.size()))) {
      if (inside.size() + across.size() > kMaxDimensions) continue;
      all.push_back(inside);
      all.back().insert(all.back().end(), across.begin(), across.end());
    }
  }
  return all;
}

std::string name_of(const Factors& factors) {
  std::string name;
  for (int f : factors) {
    name += name.empty() ? "grid " : "x";
    name += std::to_string(f);
  }
  return name;
}

bool is_uneven(const FabricView& view) {
  for (int n = 1; n < view.size(); ++n) {
    if (view.rate_kbps(n) != view.rate_kbps(0)) return true;
  }
  return false;
}

// Clusters of nearly the same size and rate: nodes dealt out from fast to slow, there and back.
std::vector<Cluster> deal(const FabricView& view, std::vector<int> order, std::size_t count) {
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return view.rate_kbps(a) > view.rate_kbps(b); });
  std::vector<Cluster> clusters(count);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t seat = i % (2 * count);
    Cluster& c = clusters[seat < count ? seat : 2 * count - 1 - seat];
    c.members.push_back(order[i]);
    c.link_kbps += view.rate_kbps(order[i]);
  }
  return clusters;
}

// Two dimensions with shares after the nodes' rates, for one rack of many uneven nodes, where
// `direct` would send too many messages.
void propose_weighted(const FabricView& view, std::vector<Blueprint>& grids) {
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(view.size())));
  const bool buildable = side * static_cast<std::size_t>(view.size()) <= kMaxRailMembers;
  if (view.racks().size() > 1 || view.size() < 16 || !is_uneven(view) || !buildable) return;
  const auto build = [&view, side](const LaneOrder& order) {
    const auto clusters = deal(view, order.flat(), side);
    return two_level_plan(clusters, optimal_shares(view, clusters), Pattern::kDirect,
                          Pattern::kDirect);
  };
  grids.push_back(
      {"grid of " + std::to_string(side) + " weighted groups", false, build, kWeightedMustGain});
}

// Nodes that stand at the same digit of the first dimension own alike, so they should be alike:
// every rack is sorted from fast to slow and cut into as many seats as that dimension has digits.
std::vector<int> seated(const FabricView& view, const LaneOrder& order, int seats) {
  std::vector<std::vector<int>> racks{order.flat()};
  const bool every_rack = std::all_of(order.racks.begin(), order.racks.end(), [&](const auto& r) {
    return r.size() % static_cast<std::size_t>(seats) == 0;
  });
  if (every_rack) racks = order.racks;
  std::vector<int> nodes;
  for (auto& rack : racks) {
    std::stable_sort(rack.begin(), rack.end(),
                     [&](int a, int b) { return view.rate_kbps(a) > view.rate_kbps(b); });
    const std::size_t per_seat = rack.size() / static_cast<std::size_t>(seats);
    for (std::size_t i = 0; i < per_seat; ++i) {
      for (std::size_t seat = 0; seat < static_cast<std::size_t>(seats); ++seat) {
        nodes.push_back(rack[seat * per_seat + i]);
      }
    }
  }
  return nodes;
}

// Shares of the first dimension, M seats for N nodes. A node at a seat of share w moves
// S (1 + w (M - 2/P)) each way over all levels, P = N / M, if all later shares are even; the
// slowest node of a seat counts.
Dimension seat_shares(const FabricView& view, const std::vector<int>& nodes, int seats) {
  std::vector<double> rates(static_cast<std::size_t>(seats), std::numeric_limits<double>::max());
  for (std::size_t x = 0; x < nodes.size(); ++x) {
    double& rate = rates[x % rates.size()];
    rate = std::min(rate, view.rate_kbps(nodes[x]));
  }
  const double extra = seats - 2.0 * seats / static_cast<double>(nodes.size());
  const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
  const double time =
      std::max(1 / *std::min_element(rates.begin(), rates.end()), (seats + extra) / sum);
  for (double& rate : rates) rate = std::max(0.0, time * rate - 1);
  return {normalized(std::move(rates))};
}

GroupPlan build_grid(const FabricView& view, const LaneOrder& order, const Factors& factors,
                     bool uneven) {
  const std::vector<int> nodes = uneven ? seated(view, order, factors[0]) : order.flat();
  std::vector<Dimension> dimensions;
  for (const int factor : factors) dimensions.push_back(even_dimension(factor));
  if (uneven) dimensions[0] = seat_shares(view, nodes, factors[0]);
  GroupPlan plan{view.size(), {}};
  add_nested_levels(nodes, dimensions, plan);
  return plan;
}

}  // namespace

// Grids of two to four dimensions (Moshpit's grid, run to the exact end). Shares are even, except
// in the first dimension, which carries most, if nodes are uneven. In one rack a lane loads its
// nodes as evenly as they can be loaded, and lanes of other groups would only get in its way: eight
// took 1.26 times the bound on 64 equal nodes, one takes 1.002 (riffle_planner_study).
std::vector<Blueprint> propose_grid(const FabricView& view) {
  std::vector<Blueprint> grids;
  const bool uneven = is_uneven(view);
  propose_weighted(view, grids);
  for (const Factors& factors : factors_of(view)) {
    if (factors.size() < 2) continue;  // one dimension is `direct`
    if (grids.size() == kMaxGrids) break;
    grids.push_back({name_of(factors) + (uneven ? ", weighted" : ""), view.racks().size() > 1,
                     [&view, factors, uneven](const LaneOrder& order) {
                       return build_grid(view, order, factors, uneven);
                     },
                     uneven ? kWeightedMustGain : 1});
  }
  return grids;
}

}  // namespace riffle
