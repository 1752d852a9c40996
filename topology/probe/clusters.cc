#include "topology/probe/clusters.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace riffle::probe {
namespace {

constexpr double kIdleWeight = 0.02;  // of a round in which nothing was held back
constexpr double kLoaded = 0.3;       // share held back that makes a round tell friend from foe
constexpr int kLabelSweeps = 20;

// Fills both triangles with sums over weights; unseen pairs become kUnknown.
PairTable quotient(const PairTable& sum, const PairTable& weight) {
  PairTable table(sum.nodes());
  for (int a = 0; a < sum.nodes(); ++a) {
    for (int b = 0; b < sum.nodes(); ++b) {
      const double w = weight.at(a, b) + weight.at(b, a);
      table.at(a, b) = w > 0 ? (sum.at(a, b) + sum.at(b, a)) / w : PairTable::kUnknown;
    }
  }
  return table;
}

}  // namespace

int renumber(std::vector<int>* group_of) {
  std::map<int, int> number;
  for (int& g : *group_of) g = number.emplace(g, static_cast<int>(number.size())).first->second;
  return static_cast<int>(number.size());
}

PairTable distance_by_rate(const RackModel& model) {
  PairTable sum(model.nodes()), weight(model.nodes());
  for (const auto& round : model.rounds()) {
    const double w = round.held_back + kIdleWeight;
    for (const auto& s : round.flows) {
      sum.at(s.from, s.to) += w * (1 - std::min(1.0, s.seen / s.cap));
      weight.at(s.from, s.to) += w;
    }
  }
  return quotient(sum, weight);
}

PairTable distance_by_latency(int nodes, const std::vector<Observed>& all) {
  PairTable table(nodes);
  for (int a = 0; a < nodes; ++a) {
    for (int b = 0; b < nodes; ++b) table.at(a, b) = PairTable::kUnknown;
  }
  for (const Observed& o : all) {
    for (std::size_t f = 0; f < o.round.flows.size(); ++f) {
      const auto [from, to] = o.round.flows[f];
      const auto rtt = static_cast<double>(o.samples[f].rtt_us);
      double& known = table.at(from, to);
      if (rtt > 0 && (known < 0 || rtt < known)) known = table.at(to, from) = rtt;
    }
  }
  return table;
}

std::vector<std::vector<int>> average_linkage(const PairTable& distance, int most) {
  const int n = distance.nodes();
  PairTable sum(n), pairs(n);  // between groups, named after their first node
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a == b || distance.at(a, b) < 0) continue;
      sum.at(a, b) = distance.at(a, b);
      pairs.at(a, b) = 1;
    }
  }
  std::vector<int> group_of(static_cast<std::size_t>(n)), alive(group_of);
  std::iota(group_of.begin(), group_of.end(), 0);
  std::iota(alive.begin(), alive.end(), 0);
  std::vector<std::vector<int>> cuts;
  while (alive.size() > 1) {
    if (static_cast<int>(alive.size()) <= most) {
      cuts.push_back(group_of);
      renumber(&cuts.back());
    }
    int best_a = -1, best_b = -1;
    double best = 0;
    for (std::size_t i = 0; i < alive.size(); ++i) {
      for (std::size_t j = i + 1; j < alive.size(); ++j) {
        const double known = pairs.at(alive[i], alive[j]);
        if (known == 0) continue;
        const double mean = sum.at(alive[i], alive[j]) / known;
        if (best_a >= 0 && mean >= best) continue;
        best = mean;
        best_a = alive[i];
        best_b = alive[j];
      }
    }
    if (best_a < 0) break;  // the rest never met
    for (const int c : alive) {
      if (c == best_a || c == best_b) continue;
      sum.at(best_a, c) = sum.at(c, best_a) += sum.at(best_b, c);
      pairs.at(best_a, c) = pairs.at(c, best_a) += pairs.at(best_b, c);
    }
    std::replace(group_of.begin(), group_of.end(), best_b, best_a);
    std::erase(alive, best_b);
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

std::vector<int> propagate_labels(const RackModel& model) {
  const auto n = static_cast<std::size_t>(model.nodes());
  std::vector<std::vector<int>> friends(n);
  for (const auto& round : model.rounds()) {
    if (round.held_back < kLoaded) continue;
    for (const auto& s : round.flows) {
      if (s.is_held_back) continue;
      friends[static_cast<std::size_t>(s.from)].push_back(s.to);
      friends[static_cast<std::size_t>(s.to)].push_back(s.from);
    }
  }
  std::vector<int> label(n);
  std::iota(label.begin(), label.end(), 0);
  for (int sweep = 0; sweep < kLabelSweeps; ++sweep) {
    bool changed = false;
    for (std::size_t node = 0; node < n; ++node) {
      std::map<int, int> votes;
      for (const int f : friends[node]) ++votes[label[static_cast<std::size_t>(f)]];
      int best = label[node], most = votes.contains(best) ? votes[best] : 0;
      for (const auto& [l, count] : votes) {
        if (count > most) {
          best = l;
          most = count;
        }
      }
      changed |= best != label[node];
      label[node] = best;
    }
    if (!changed) break;
  }
  renumber(&label);
  return label;
}

}  // namespace riffle::probe
