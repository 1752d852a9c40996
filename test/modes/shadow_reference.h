// What the calls of shadow_sync should give, one call of the job's step on all nodes after the
// other, in double precision and straight from the rules' recursions. When a round's result is
// brought in is the network's affair, so that is told; everything else follows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plugin/collective/base/shadow_settings.h"

namespace riffle::testing {

class ShadowReference {
 public:
  using Groups =
      std::function<std::vector<int>(std::uint64_t round, std::uint64_t segment, int node)>;
  struct Call {
    const std::vector<std::vector<float>>* input = nullptr;
    const std::vector<std::vector<float>>* output = nullptr;
    std::vector<bool> brings;  // by node
    bool is_full = false, begins_round = false;
    std::uint64_t round = 0;
  };

  // `groups`: whom a node averages with in a round, for rules whose rounds are not over all;
  // `segment`: elements that have the same ones.
  ShadowReference(const ShadowSettings& settings, int nodes, std::uint64_t elements,
                  std::uint64_t segment, Groups groups)
      : settings_(settings),
        nodes_(nodes),
        elements_(elements),
        segment_(segment),
        groups_(std::move(groups)) {
    const std::vector<double> nothing(elements, 0);
    y_.assign(nodes, nothing);
    centre_ = velocity_ = nothing;
    own_ = sent_ = mean_ = y_;
  }

  // The first wrong output, or empty.
  std::string check(const Call& call) {
    for (std::uint64_t e = 0; e < elements_; ++e) {
      if (call.begins_round && e % segment_ == 0) {
        members_.clear();
        for (int n = 0; n < nodes_; ++n) {
          members_.push_back(groups_(call.round, e / segment_, n));
        }
      }
      const std::vector<double>& r = call.is_full ? together(call, e) : alone(call, e);
      for (int n = 0; n < nodes_; ++n) {
        const double got = static_cast<double>((*call.output)[n][e]);
        const double scale = 1 + std::fabs(y_[n][e]) + std::fabs(r[n]);
        worst_error_ = std::max(worst_error_, std::fabs(got / nodes_ - r[n]) / scale);
        if (!(std::fabs(got / nodes_ - r[n]) <= 1e-5 * scale)) {
          return std::to_string(got) + " on node " + std::to_string(n) + " for element " +
                 std::to_string(e) + ", expected " + std::to_string(nodes_ * r[n]);
        }
        y_[n][e] += r[n];
      }
      if (call.is_full) reset(e);
      if (call.begins_round) round(e);
    }
    return "";
  }

  double worst_error() const { return worst_error_; }
  const std::vector<std::vector<double>>& moved() const { return y_; }

 private:
  double brought(int n, std::uint64_t e, double g) const {
    const double y = y_[n][e];
    switch (settings_.variant) {
      case ShadowVariant::kDelta:
      case ShadowVariant::kFir:
        return mean_[n][e] - sent_[n][e];
      case ShadowVariant::kInterpolation:
        return settings_.pull * (mean_[n][e] - y - g);
      case ShadowVariant::kBmuf:
      case ShadowVariant::kEasgd:
        return settings_.pull * (centre_[e] - y - g);
    }
    return 0;
  }

  std::vector<double>& alone(const Call& call, std::uint64_t e) {
    std::vector<double>& r = r_;
    r.resize(nodes_);
    for (int n = 0; n < nodes_; ++n) {
      const double g = static_cast<double>((*call.input)[n][e]);
      r[n] = g + (call.brings[n] ? brought(n, e, g) : 0);
      own_[n][e] += g;
    }
    return r;
  }

  std::vector<double>& together(const Call& call, std::uint64_t e) {
    double mean = 0;
    std::vector<double>& r = alone(call, e);
    for (int n = 0; n < nodes_; ++n) mean += (y_[n][e] + r[n]) / nodes_;
    for (int n = 0; n < nodes_; ++n) r[n] = mean - y_[n][e];
    return r;
  }

  // Everybody stands at the same place, from which all is measured now.
  void reset(std::uint64_t e) {
    const double at = y_[0][e];
    for (int n = 0; n < nodes_; ++n) y_[n][e] = own_[n][e] = 0;
    centre_[e] -= at;
  }

  void round(std::uint64_t e) {
    const bool is_fir = settings_.variant == ShadowVariant::kFir;
    for (int n = 0; n < nodes_; ++n) sent_[n][e] = is_fir ? own_[n][e] : y_[n][e];
    double all = 0;
    for (int n = 0; n < nodes_; ++n) all += sent_[n][e] / nodes_;
    for (int n = 0; n < nodes_; ++n) {
      mean_[n][e] = all;
      own_[n][e] = 0;
      if (is_over_all(settings_.variant)) continue;
      mean_[n][e] = 0;
      for (const int m : members_[n]) {
        mean_[n][e] += sent_[m][e] / static_cast<double>(members_[n].size());
      }
    }
    if (settings_.variant == ShadowVariant::kEasgd) {
      centre_[e] += settings_.follow * (all - centre_[e]);
    }
    if (settings_.variant == ShadowVariant::kBmuf) {
      velocity_[e] = settings_.momentum_among(nodes_) * velocity_[e] +
                     settings_.block_rate * (all - centre_[e]);
      centre_[e] += velocity_[e];
    }
  }

  const ShadowSettings settings_;
  const int nodes_;
  const std::uint64_t elements_, segment_;
  const Groups groups_;
  std::vector<std::vector<int>> members_;  // of each node's group
  // By node and element: what a node moved by; that of its own since the last round; what the last
  // round sent, and its mean.
  std::vector<std::vector<double>> y_, own_, sent_, mean_;
  std::vector<double> centre_, velocity_;
  std::vector<double> r_;
  double worst_error_ = 0;
};

}  // namespace riffle::testing
