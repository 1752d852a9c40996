#include "topology/probe/clusters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

namespace riffle::probe {
namespace {

constexpr double kIdleWeight = 0.02;    // of a round in which nothing was held back
constexpr double kRareHeldBack = 0.07;  // share of flows within a rack
constexpr double kMoreVotes = 1e-9;     // nats
constexpr int kMostSweeps = 20;

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

namespace {

// What one flow says for its ends being in one rack, in nats: that none of its rate is held back
// is likely there, and elsewhere as likely as it is in the whole round.
double for_one_rack(const RackModel::PairRound& round, const RackModel::Sighting& flow) {
  const double held = std::clamp(round.held_back, kRareHeldBack, 1 - kRareHeldBack);
  return flow.is_held_back ? std::log(kRareHeldBack / held)
                           : std::log((1 - kRareHeldBack) / (1 - held));
}

using Votes = std::vector<std::map<int, double>>;  // per node or group: for others, in nats

// Greedy additive edge contraction: joins the two groups with the most votes for it, again and
// again, while there are any.
std::vector<int> contract(Votes votes) {
  struct Edge {
    double nats;
    int a, b;
    bool operator<(const Edge& other) const { return nats < other.nats; }
  };
  std::priority_queue<Edge> queue;
  for (std::size_t a = 0; a < votes.size(); ++a) {
    for (const auto& [b, nats] : votes[a]) {
      if (nats > 0 && static_cast<int>(a) < b) queue.push({nats, static_cast<int>(a), b});
    }
  }
  std::vector<int> group_of(votes.size());
  std::iota(group_of.begin(), group_of.end(), 0);
  while (!queue.empty()) {
    const auto [nats, a, b] = queue.top();
    queue.pop();
    auto& kept = votes[static_cast<std::size_t>(a)];
    auto& gone = votes[static_cast<std::size_t>(b)];
    const auto known = kept.find(b);
    if (known == kept.end() || known->second != nats) continue;  // of groups before they grew
    kept.erase(known);
    gone.erase(a);
    for (const auto& [c, more] : std::exchange(gone, {})) {
      auto& third = votes[static_cast<std::size_t>(c)];
      third.erase(b);
      const double sum = kept[c] += more;
      third[a] = sum;
      if (sum > 0) queue.push({sum, a, c});
    }
    std::replace(group_of.begin(), group_of.end(), b, a);
  }
  return group_of;
}

// Nodes change to the group with the most votes for them, while there are any.
void settle(const Votes& votes, std::vector<int>* group_of) {
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool changed = false;
    for (std::size_t node = 0; node < votes.size(); ++node) {
      std::map<int, double> sums;
      for (const auto& [other, nats] : votes[node]) {
        sums[(*group_of)[static_cast<std::size_t>(other)]] += nats;
      }
      int& own = (*group_of)[node];
      double most = sums[own];
      for (const auto& [group, nats] : sums) {
        if (nats <= most + kMoreVotes) continue;
        most = nats;
        own = group;
        changed = true;
      }
    }
    if (!changed) return;
  }
}

}  // namespace

std::vector<int> correlation_clusters(const RackModel& model) {
  Votes votes(static_cast<std::size_t>(model.nodes()));
  for (const auto& round : model.rounds()) {
    for (const auto& flow : round.flows) {
      const double nats = for_one_rack(round, flow);
      votes[static_cast<std::size_t>(flow.from)][flow.to] += nats;
      votes[static_cast<std::size_t>(flow.to)][flow.from] += nats;
    }
  }
  std::vector<int> group_of = contract(votes);
  settle(votes, &group_of);
  renumber(&group_of);
  return group_of;
}

}  // namespace riffle::probe
