#include "topology/probe/node_rates.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace riffle::probe {
namespace {

constexpr double kNear = 1.13;     // within this factor values say the same
constexpr double kReached = 0.90;  // an end counts as the limit
constexpr double kClearly = 1.15;  // "can do clearly more"
constexpr double kUnsteady = 0.5;  // confidence in what was never steady

using Values = std::vector<std::vector<double>>;  // per node

// What nodes did in all their flows of a round. On a link that is far slower than others few frames
// arrive in a round, a full token bucket's among them, and no flow of it may ever be steady.
struct Seen {
  explicit Seen(std::size_t nodes) : steady(nodes), unsteady(nodes) {}
  Values steady, unsteady;

  // Of what was never seen steadily the other values must do: little is known then, but more than
  // of a node at which nothing arrived.
  const std::vector<double>& of(std::size_t node) const {
    return steady[node].empty() ? unsteady[node] : steady[node];
  }
  Rate rate(std::size_t node, const Seen& opposite) const {
    Rate rate = upper_end(of(node), opposite.of(node));
    if (steady[node].empty()) rate.confidence *= kUnsteady;
    return rate;
  }
};

void collect(const Observed& o, Seen* out, Seen* in) {
  std::vector<double> sent(out->steady.size(), 0), received(sent), unsteady_out(sent),
      unsteady_in(sent);
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
  const auto put = [](Seen* seen, std::size_t node, double sum, double unsteady) {
    if (sum > 0) (2 * unsteady < sum ? seen->steady : seen->unsteady)[node].push_back(sum);
  };
  for (std::size_t n = 0; n < sent.size(); ++n) {
    put(out, n, sent[n], unsteady_out[n]);
    put(in, n, received[n], unsteady_in[n]);
  }
}

}  // namespace

Rate upper_end(std::vector<double> values, const std::vector<double>& others, double power) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end(), std::greater<>());
  const auto near = [](const std::vector<double>& list, double v) {
    return std::count_if(list.begin(), list.end(),
                         [v](double x) { return x <= v * kNear && x * kNear >= v; });
  };
  double centre = values[values.size() / 2], best = 0;
  for (const double v : values) {
    const auto own = near(values, v);
    if (values.size() > 2 && own + near(others, v) < 2) continue;
    const double score = static_cast<double>(own) * std::pow(v / values.front(), power);
    if (score <= best) continue;
    best = score;
    centre = v;
  }
  std::erase_if(values, [&](double x) { return x > centre * kNear || x * kNear < centre; });
  const double n = static_cast<double>(values.size()), middle = values[values.size() / 2];
  double squares = 0;
  for (const double x : values) squares += (x / middle - 1) * (x / middle - 1);
  return {middle, n / (n + 1) * (1 - std::min(1.0, 4 * std::sqrt(squares / n))), false};
}

NodeRates estimate_node_rates(int nodes, const std::vector<Observed>& all) {
  Seen out(static_cast<std::size_t>(nodes)), in(out);
  for (const Observed& o : all) collect(o, &out, &in);
  NodeRates rates;
  for (std::size_t n = 0; n < out.steady.size(); ++n) {
    rates.out.push_back(out.rate(n, in));
    rates.in.push_back(in.rate(n, out));
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
