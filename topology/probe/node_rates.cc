#include "topology/probe/node_rates.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace riffle::probe {
namespace {

constexpr double kNear = 0.92;     // belongs to the upper end
constexpr double kReached = 0.90;  // an end counts as the limit
constexpr double kClearly = 1.15;  // "can do clearly more"
constexpr std::size_t kMostOutliers = 2;

using Values = std::vector<std::vector<double>>;  // per node

void collect(const Observed& o, Values* out, Values* in) {
  std::vector<double> sent(out->size(), 0), received(sent), unsteady_out(sent), unsteady_in(sent);
  for (std::size_t f = 0; f < o.round.flows.size(); ++f) {
    const auto from = static_cast<std::size_t>(o.round.flows[f].from);
    const auto to = static_cast<std::size_t>(o.round.flows[f].to);
    const auto seen = static_cast<double>(o.samples[f].kbps);
    sent[from] += seen;
    received[to] += seen;
    if (!o.samples[f].is_steady) {
      unsteady_out[from] += seen;
      unsteady_in[to] += seen;
    }
  }
  for (std::size_t n = 0; n < out->size(); ++n) {
    if (2 * unsteady_out[n] < sent[n]) (*out)[n].push_back(sent[n]);
    if (2 * unsteady_in[n] < received[n]) (*in)[n].push_back(received[n]);
  }
}

}  // namespace

Rate upper_end(std::vector<double> values, const std::vector<double>& others) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end(), std::greater<>());
  std::size_t top = 0;
  const auto support = [&](double v) {
    const auto own = std::count_if(values.begin() + static_cast<std::ptrdiff_t>(top), values.end(),
                                   [&](double x) { return x >= kNear * v; });
    const auto other = std::count_if(others.begin(), others.end(),
                                     [&](double x) { return x >= kNear * v && x * kNear <= v; });
    return own + other;
  };
  while (values.size() - top > 2 && top < kMostOutliers && support(values[top]) < 2) ++top;
  double sum = 0, squares = 0;
  std::size_t count = 0;
  for (std::size_t i = top; i < values.size() && values[i] >= kNear * values[top]; ++i) {
    sum += values[i];
    squares += values[i] * values[i];
    ++count;
  }
  const double n = static_cast<double>(count), mean = sum / n;
  const double spread = std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean;
  return {mean, n / (n + 1) * (1 - std::min(1.0, 4 * spread)), false};
}

NodeRates estimate_node_rates(int nodes, const std::vector<Observed>& all) {
  Values out(static_cast<std::size_t>(nodes)), in(out);
  for (const Observed& o : all) collect(o, &out, &in);
  NodeRates rates;
  for (std::size_t n = 0; n < out.size(); ++n) {
    rates.out.push_back(upper_end(out[n], in[n]));
    rates.in.push_back(upper_end(in[n], out[n]));
  }
  return rates;
}

void mark_own_limits(const std::vector<Observed>& all, const std::vector<int>& rack_of,
                     NodeRates* rates) {
  for (const Observed& o : all) {
    for (std::size_t f = 0; f < o.round.flows.size(); ++f) {
      const auto a = static_cast<std::size_t>(o.round.flows[f].from);
      const auto b = static_cast<std::size_t>(o.round.flows[f].to);
      if (rack_of[a] != rack_of[b]) continue;  // the limit may be an uplink
      Rate& from = rates->out[a];
      Rate& to = rates->in[b];
      const auto seen = static_cast<double>(o.samples[f].kbps);
      if (seen >= kReached * from.kbps && to.kbps >= kClearly * from.kbps) from.is_own = true;
      if (seen >= kReached * to.kbps && from.kbps >= kClearly * to.kbps) to.is_own = true;
    }
  }
}

}  // namespace riffle::probe
