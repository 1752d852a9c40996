#include "topology/probe/rack_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "topology/probe/clusters.h"

namespace riffle::probe {
namespace {

constexpr int kLeastNodes = 4;            // two racks of two
constexpr double kLeastHeldBack = 0.02;   // fewer flows than that: nothing to explain
constexpr double kLeastGain = 8;          // nats
constexpr double kLeastGainShare = 0.15;  // of what perfect knowledge would gain
constexpr double kNatsPerNat = 8;         // flows of a round are not independent of each other
constexpr double kMostSure = 0.97;        // ... and networks have what no model of racks knows
constexpr std::size_t kBestCuts = 3;      // that are worth improving
constexpr double kMostWork = 2e6;         // flows predicted

struct Candidate {
  std::vector<int> rack_of;
  int racks = 1;
  double prior = 0;  // nats that hints give it
  double cost = 0;   // less the prior
  // Per rack, nats: how much worse the best explanation is in which that rack is another one.
  std::vector<double> margin;
};

// Improves a candidate by moving one node or joining two racks while that pays. The last sweep, in
// which nothing did, leaves the margins.
class Improver {
 public:
  Improver(const RackModel& model, const std::vector<RackHint>& hints)
      : model_(model), hints_(hints), work_left_(kMostWork) {}

  Candidate evaluated(std::vector<int> rack_of) {
    Candidate c;
    c.rack_of = std::move(rack_of);
    c.racks = renumber(&c.rack_of);
    work_left_ -= static_cast<double>(model_.sightings());
    c.prior = prior(hints_, c.rack_of);
    c.cost = model_.cost(c.rack_of, c.racks) - c.prior;
    c.margin.assign(static_cast<std::size_t>(c.racks), std::numeric_limits<double>::infinity());
    return c;
  }
  bool is_spent() const { return work_left_ <= 0; }

  void improve(Candidate* best) {
    bool changed = true;
    while (changed && !is_spent()) {
      changed = false;
      // Pieces of one rack first: few attempts, and moving nodes may use up the effort.
      while (join(best)) changed = true;
      // Where the model errs most is most to gain, if the effort does not reach for all.
      for (const int node : model_.worst_first(best->rack_of, best->racks)) {
        changed |= move(node, best);
      }
    }
  }

 private:
  // In `other` the racks `a` and `b` of `best` are different ones.
  Candidate compared(std::vector<int> other, int a, int b, Candidate* best) {
    Candidate c = evaluated(std::move(other));
    for (const int rack : {a, b}) {
      double& margin = best->margin[static_cast<std::size_t>(rack)];
      margin = std::min(margin, c.cost - best->cost);
    }
    return c;
  }
  static bool is_better(const Candidate& a, const Candidate& b) { return a.cost < b.cost - 1e-9; }

  bool move(int node, Candidate* best) {
    bool changed = false;
    for (int rack = 0; rack < best->racks && !is_spent(); ++rack) {
      std::vector<int> other = best->rack_of;
      const int own = std::exchange(other[static_cast<std::size_t>(node)], rack);
      if (own == rack) continue;
      Candidate c = compared(std::move(other), own, rack, best);
      if (!is_better(c, *best)) continue;
      *best = std::move(c);
      changed = true;
    }
    return changed;
  }
  // The two that gain most by it.
  bool join(Candidate* best) {
    Candidate joined = *best;
    for (int a = 0; a < best->racks; ++a) {
      for (int b = a + 1; b < best->racks && !is_spent(); ++b) {
        std::vector<int> other = best->rack_of;
        std::replace(other.begin(), other.end(), b, a);
        Candidate c = compared(std::move(other), a, b, best);
        if (is_better(c, joined)) joined = std::move(c);
      }
    }
    if (joined.racks == best->racks) return false;
    *best = std::move(joined);
    return true;
  }

  const RackModel& model_;
  const std::vector<RackHint>& hints_;
  double work_left_;
};

std::vector<std::vector<int>> candidates(const RackModel& model, const std::vector<Observed>& all,
                                         const std::vector<RackHint>& hints) {
  const int most = std::max(2, model.nodes() / 2);
  std::vector<std::vector<int>> every;
  for (const RackHint& hint : hints) every.push_back(hint.rack_of);
  if (model.nodes() > kDenseNodes) {
    every.push_back(correlation_clusters(model));
    return every;
  }
  for (const PairTable& distance :
       {distance_by_rate(model), distance_by_latency(model.nodes(), all)}) {
    auto cuts = average_linkage(distance, most);
    every.insert(every.end(), cuts.begin(), cuts.end());
  }
  return every;
}

std::vector<Racks::Overruled> overruled(const std::vector<RackHint>& hints,
                                        const std::vector<int>& rack_of) {
  std::vector<Racks::Overruled> all;
  for (const RackHint& hint : hints) {
    auto nodes = contradicting(hint, rack_of);
    if (!nodes.empty()) all.push_back({hint.source, std::move(nodes)});
  }
  return all;
}

Racks none(const RackModel& model) {
  Racks racks;
  racks.rack_of.assign(static_cast<std::size_t>(model.nodes()), 0);
  racks.held_back = model.held_back();
  return racks;
}

// Nats if every flow were predicted as well as noise allows.
double cost_of_truth(const RackModel& model) {
  return 0.5 * static_cast<double>(model.sightings());
}

// How likely it is that the racks are those, of all that are like them. Where the effort did not
// reach for comparing, a node's part of all that speaks for them has to do.
std::vector<double> confidence(const std::vector<double>& margins, double nats_per_node) {
  std::vector<double> p;
  for (const double margin : margins) {
    const double nats = std::isfinite(margin) ? margin : nats_per_node;
    p.push_back(kMostSure / (1 + std::exp(-nats / kNatsPerNat)));
  }
  return p;
}

}  // namespace

Racks find_racks(const RackModel& model, const std::vector<Observed>& all,
                 const std::vector<RackHint>& hints) {
  Racks found = none(model);
  if (model.nodes() < kLeastNodes || model.held_back() < kLeastHeldBack) return found;
  Improver improver(model, hints);
  const Candidate flat = improver.evaluated(found.rack_of);
  std::vector<Candidate> best;
  for (auto& cut : candidates(model, all, hints))
    best.push_back(improver.evaluated(std::move(cut)));
  std::stable_sort(best.begin(), best.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  if (best.size() > kBestCuts) best.resize(kBestCuts);
  for (Candidate& c : best) improver.improve(&c);
  const auto winner =
      std::min_element(best.begin(), best.end(),
                       [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  if (winner == best.end() || winner->racks < 2) return found;
  found.suspected = winner->rack_of;
  const double gain = flat.cost - winner->cost;
  if (gain <= winner->prior - flat.prior) return found;  // hints alone
  if (gain < kLeastGain || gain < kLeastGainShare * (flat.cost - cost_of_truth(model))) {
    return found;
  }
  found.rack_of = winner->rack_of;
  found.count = winner->racks;
  found.uplinks = model.uplinks(winner->rack_of, winner->racks);
  found.confidence = confidence(winner->margin, gain / model.nodes());
  found.overruled = overruled(hints, found.rack_of);
  return found;
}

Racks known_racks(const RackModel& model, const std::vector<int>& rack_of) {
  Racks racks = none(model);
  racks.rack_of = racks.suspected = rack_of;
  racks.count = 1 + *std::max_element(rack_of.begin(), rack_of.end());
  if (racks.count < 2) return racks;
  racks.uplinks = model.uplinks(rack_of, racks.count);
  racks.confidence.assign(static_cast<std::size_t>(racks.count), 1);
  return racks;
}

}  // namespace riffle::probe
