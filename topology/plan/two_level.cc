#include "topology/plan/two_level.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "topology/plan/shares.h"

namespace riffle {
namespace {

// A cluster in the terms of the formulas in the header; rates in kbit/s, t in buffers per kbit/s.
struct Demand {
  double members, rate, link;
  double slack(double t, double clusters) const {
    const double by_node = t * rate - (2 * members - 1);
    const double by_link = t * link - 1;
    return std::max(0.0, std::min(by_node, by_link) / (clusters - 2));
  }
};

// Least t at which the clusters can take over all of the buffer: their slack grows with t.
double least_time(const std::vector<Demand>& demands, double t) {
  const double clusters = static_cast<double>(demands.size());
  const auto enough = [&](double at) {
    double sum = 0;
    for (const Demand& d : demands) sum += d.slack(at, clusters);
    return sum >= 1;
  };
  if (enough(t)) return t;
  double below = t;
  while (!enough(t)) t *= 2;
  for (int i = 0; i < 60; ++i) {  // a fixed number of halvings: the same bits everywhere
    const double middle = (below + t) / 2;
    (enough(middle) ? t : below) = middle;
  }
  return t;
}

// Cuts of clusters of different sizes meet in slivers if they may lie anywhere; on a common raster
// they do not, and the raster is fine enough (1/1024 of a share) not to matter.
Share raster(const std::vector<Cluster>& clusters) {
  std::size_t largest = 1;
  for (const Cluster& c : clusters) largest = std::max(largest, c.members.size());
  return std::max<Share>(1, kShareUnits / 1024 / std::bit_ceil(static_cast<Share>(largest)));
}

}  // namespace

TwoLevelShares even_shares(const FabricView& view, const std::vector<Cluster>& clusters) {
  TwoLevelShares shares{even_weights(clusters.size()), std::vector<double>(view.size())};
  for (const Cluster& c : clusters) {
    for (int n : c.members) shares.inside[n] = 1.0 / static_cast<double>(c.members.size());
  }
  return shares;
}

TwoLevelShares optimal_shares(const FabricView& view, const std::vector<Cluster>& clusters) {
  TwoLevelShares shares = even_shares(view, clusters);
  const double count = static_cast<double>(clusters.size());
  std::vector<Demand> demands;
  double t = 0;
  for (const Cluster& c : clusters) {
    Demand d{static_cast<double>(c.members.size()), 0, c.link_kbps};
    for (int n : c.members) {
      d.rate += view.rate_kbps(n);
      t = std::max(t, 1 / view.rate_kbps(n));
    }
    t = std::max({t, 1 / d.link, (2 * d.members - 1) / d.rate});
    demands.push_back(d);
  }
  if (clusters.size() > 2) {
    t = least_time(demands, t);
    std::vector<double> across;
    for (const Demand& d : demands) across.push_back(d.slack(t, count));
    shares.across = normalized(std::move(across));
  }
  for (std::size_t r = 0; r < clusters.size(); ++r) {
    std::vector<double> inside;
    for (int n : clusters[r].members) inside.push_back(std::max(0.0, t * view.rate_kbps(n) - 1));
    if (std::all_of(inside.begin(), inside.end(), [](double w) { return w <= 0; })) continue;
    inside = normalized(std::move(inside));
    for (std::size_t j = 0; j < inside.size(); ++j) {
      shares.inside[clusters[r].members[j]] = inside[j];
    }
  }
  return shares;
}

GroupPlan two_level_plan(const std::vector<Cluster>& clusters, const TwoLevelShares& shares,
                         Pattern inside, Pattern across) {
  GroupPlan plan;
  plan.levels.resize(2);
  const Share grain = raster(clusters);
  std::vector<std::vector<Share>> cuts;
  std::set<Share> breaks;
  for (const Cluster& c : clusters) {
    plan.nodes += static_cast<int>(c.members.size());
    std::vector<double> weights;
    for (int n : c.members) weights.push_back(shares.inside[n]);
    cuts.push_back(cuts_of(weights, 0, kShareUnits, grain));
    breaks.insert(cuts.back().begin(), cuts.back().end());
    if (c.members.size() > 1) plan.levels[0].groups.push_back({inside, c.members, cuts.back()});
  }
  if (plan.levels[0].groups.empty()) plan.levels.erase(plan.levels.begin());

  std::vector<std::size_t> owner(clusters.size(), 0);
  for (auto it = breaks.begin(); std::next(it) != breaks.end(); ++it) {
    Group rail{across, {}, cuts_of(shares.across, *it, *std::next(it))};
    for (std::size_t r = 0; r < clusters.size(); ++r) {
      while (cuts[r][owner[r] + 1] <= *it) ++owner[r];
      rail.members.push_back(clusters[r].members[owner[r]]);
    }
    plan.levels.back().groups.push_back(std::move(rail));
  }
  return plan;
}

}  // namespace riffle
