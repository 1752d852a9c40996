#include "topology/probe/rack_search.h"

#include <algorithm>
#include <limits>

#include "topology/probe/clusters.h"

namespace riffle::probe {
namespace {

constexpr int kLeastNodes = 4;            // two racks of two
constexpr double kLeastHeldBack = 0.04;   // fewer flows than that: nothing to explain
constexpr double kLeastGain = 12;         // nats
constexpr double kLeastGainShare = 0.35;  // of what perfect knowledge would gain
constexpr double kLeastConfidence = 0.6;
constexpr std::size_t kBestCuts = 3;  // that are worth improving
constexpr double kMostWork = 8e6;     // flows predicted

struct Candidate {
  std::vector<int> rack_of;
  int racks = 1;
  double cost = 0;
};

// Improves a candidate by moving one node or joining two racks while that pays.
class Improver {
 public:
  explicit Improver(const RackModel& model) : model_(model), work_left_(kMostWork) {}

  Candidate evaluated(std::vector<int> rack_of) {
    Candidate c;
    c.rack_of = std::move(rack_of);
    c.racks = renumber(&c.rack_of);
    work_left_ -= static_cast<double>(model_.sightings());
    c.cost = model_.cost(c.rack_of, c.racks);
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
  bool try_out(std::vector<int> rack_of, Candidate* best) {
    Candidate c = evaluated(std::move(rack_of));
    if (c.cost >= best->cost - 1e-9) return false;
    *best = std::move(c);
    return true;
  }
  bool move(int node, Candidate* best) {
    bool changed = false;
    for (int rack = 0; rack < best->racks && !is_spent(); ++rack) {
      std::vector<int> other = best->rack_of;
      if (other[static_cast<std::size_t>(node)] == rack) continue;
      other[static_cast<std::size_t>(node)] = rack;
      changed |= try_out(std::move(other), best);
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
        try_out(std::move(other), &joined);
      }
    }
    if (joined.racks == best->racks) return false;
    *best = std::move(joined);
    return true;
  }

  const RackModel& model_;
  double work_left_;
};

std::vector<std::vector<int>> candidates(const RackModel& model, const std::vector<Observed>& all) {
  const int most = std::max(2, model.nodes() / 2);
  if (model.nodes() > kDenseNodes) return {propagate_labels(model)};
  auto cuts = average_linkage(distance_by_rate(model), most);
  auto more = average_linkage(distance_by_latency(model.nodes(), all), most);
  cuts.insert(cuts.end(), more.begin(), more.end());
  return cuts;
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

}  // namespace

Racks find_racks(const RackModel& model, const std::vector<Observed>& all) {
  Racks found = none(model);
  if (model.nodes() < kLeastNodes || model.held_back() < kLeastHeldBack) return found;
  Improver improver(model);
  const Candidate flat = improver.evaluated(found.rack_of);
  std::vector<Candidate> best;
  for (auto& cut : candidates(model, all)) best.push_back(improver.evaluated(std::move(cut)));
  std::stable_sort(best.begin(), best.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  if (best.size() > kBestCuts) best.resize(kBestCuts);
  const Candidate* winner = &flat;
  for (Candidate& c : best) {
    improver.improve(&c);
    if (c.cost < winner->cost) winner = &c;
  }
  const double gain = flat.cost - winner->cost;
  if (winner->racks < 2 || gain < kLeastGain ||
      gain < kLeastGainShare * (flat.cost - cost_of_truth(model))) {
    return found;
  }
  RackFit fit = model.fit(winner->rack_of, winner->racks);
  if (*std::min_element(fit.explained.begin(), fit.explained.end()) < kLeastConfidence) {
    return found;
  }
  found.rack_of = winner->rack_of;
  found.count = winner->racks;
  found.uplinks = std::move(fit.uplinks);
  found.confidence = std::move(fit.explained);
  return found;
}

Racks known_racks(const RackModel& model, const std::vector<int>& rack_of) {
  Racks racks = none(model);
  racks.rack_of = rack_of;
  racks.count = 1 + *std::max_element(rack_of.begin(), rack_of.end());
  if (racks.count < 2) return racks;
  RackFit fit = model.fit(rack_of, racks.count);
  racks.uplinks = std::move(fit.uplinks);
  racks.confidence = std::move(fit.explained);
  return racks;
}

}  // namespace riffle::probe
