// A network for probes to be tried on: nodes of given rates behind uplinks, flows that share every
// link max-min fairly by weights drawn per flow (TCP is not quite fair), log-normal noise, and now
// and then a flow that was disturbed.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"
#include "topology/probe/survey.h"

namespace riffle {

struct ProbeNoise {
  double sigma = 0.02;       // of every count
  double unfairness = 0.15;  // of the weights by which flows share
  double outliers = 0.01;    // share of flows that lose up to half, or look up to half too fast
};

class ProbeNetwork {
 public:
  ProbeNetwork(Fabric fabric, ProbeNoise noise, std::uint64_t seed)
      : fabric_(std::move(fabric)), noise_(noise), random_(seed) {}

  probe::Observed run(const probe::Round& round) {
    probe::Observed o{round, {}};
    const std::vector<double> rates = share(round.flows);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      double seen = rates[i] * std::exp(noise_.sigma * normal_(random_));
      const bool is_outlier = uniform_(random_) < noise_.outliers;
      if (is_outlier) seen *= 0.5 + uniform_(random_);
      const auto& f = round.flows[i];
      const bool is_near = fabric_.nodes[f.from].rack == fabric_.nodes[f.to].rack;
      probe::Sample s;
      s.kbps = s.together_kbps = static_cast<std::int64_t>(seen);
      s.is_steady = !is_outlier || uniform_(random_) < 0.5;
      s.rtt_us = static_cast<std::int64_t>(2.0 * fabric_.latency_us_between(f.from, f.to) *
                                           (is_near ? 1 : 1.05) *
                                           std::exp(0.2 * std::abs(normal_(random_))));
      o.samples.push_back(s);
    }
    flows_ += static_cast<int>(rates.size());
    return o;
  }
  int flows() const { return flows_; }

 private:
  // Weighted max-min: all rise in proportion to their weights until a link is full.
  std::vector<double> share(const std::vector<probe::Flow>& flows) {
    const int n = fabric_.size(), racks = static_cast<int>(fabric_.racks.size());
    std::vector<double> left;
    for (const auto& node : fabric_.nodes) left.push_back(node.out_kbps);
    for (const auto& node : fabric_.nodes) left.push_back(node.in_kbps);
    const double never = std::numeric_limits<double>::infinity();
    for (const auto& r : fabric_.racks) left.push_back(r.up_kbps ? r.up_kbps : never);
    for (const auto& r : fabric_.racks) left.push_back(r.down_kbps ? r.down_kbps : never);
    std::vector<std::vector<int>> links(flows.size());
    std::vector<double> weight(flows.size()), rate(flows.size(), -1), open(left.size(), 0);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const int a = fabric_.nodes[flows[i].from].rack, b = fabric_.nodes[flows[i].to].rack;
      links[i] = {flows[i].from, n + flows[i].to};
      if (a != b) {
        links[i].push_back(2 * n + a);
        links[i].push_back(2 * n + racks + b);
      }
      weight[i] = std::exp(noise_.unfairness * normal_(random_));
      for (int l : links[i]) open[l] += weight[i];
    }
    for (std::size_t fixed = 0; fixed < flows.size();) {
      std::size_t tightest = 0;
      double level = never;
      for (std::size_t l = 0; l < left.size(); ++l) {
        if (open[l] > 1e-9 && left[l] / open[l] < level) {
          level = left[l] / open[l];
          tightest = l;
        }
      }
      for (std::size_t i = 0; i < flows.size(); ++i) {
        if (rate[i] >= 0 || std::find(links[i].begin(), links[i].end(),
                                      static_cast<int>(tightest)) == links[i].end()) {
          continue;
        }
        rate[i] = level * weight[i];
        ++fixed;
        for (int l : links[i]) {
          left[l] = std::max(0.0, left[l] - rate[i]);
          open[l] -= weight[i];
        }
      }
      open[tightest] = 0;
    }
    return rate;
  }

  Fabric fabric_;
  ProbeNoise noise_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  int flows_ = 0;
};

inline Fabric with_racks(int nodes, int racks, std::int64_t kbps, std::int64_t uplink_kbps,
                         bool interleaved) {
  Fabric f = even_fabric(nodes, kbps);
  f.racks.clear();
  for (int r = 0; r < racks; ++r) {
    f.racks.push_back({"r" + std::to_string(r), uplink_kbps, uplink_kbps});
  }
  for (int n = 0; n < nodes; ++n) f.nodes[n].rack = interleaved ? n % racks : n * racks / nodes;
  return f;
}

inline double worst_rate_error(const Fabric& fabric, const probe::Findings& found) {
  double worst = 0;
  for (int n = 0; n < fabric.size(); ++n) {
    worst = std::max(worst, std::abs(found.rates.out[n].kbps / fabric.nodes[n].out_kbps - 1));
    worst = std::max(worst, std::abs(found.rates.in[n].kbps / fabric.nodes[n].in_kbps - 1));
  }
  return worst;
}

inline probe::Findings survey(ProbeNetwork& network, int nodes, std::uint64_t seed) {
  probe::Survey survey(nodes, seed);
  while (auto round = survey.next()) survey.add(network.run(*round));
  return survey.findings();
}

}  // namespace riffle
