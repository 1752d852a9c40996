#include "topology/probe/node_rates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace riffle::probe {
namespace {

constexpr double kNear = 1.13;     // within this factor values say the same
constexpr double kSupport = 1.25;  // ... or one supports another that was seen only once
constexpr double kReached = 0.90;  // an end counts as the limit
constexpr double kClearly = 1.15;  // "can do clearly more"
constexpr double kUnsteady = 0.5;  // confidence in what was never steady
// So many flows of a node take from each other: none is steady, their sum is. Of more of them too
// little arrives in a round.
constexpr int kFan = 3, kMostFan = 6;

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
    std::vector<double> others = opposite.of(node);
    for (const Seen* seen : {this, &opposite}) {
      if (seen->steady[node].empty()) continue;
      others.insert(others.end(), seen->unsteady[node].begin(), seen->unsteady[node].end());
    }
    Rate rate = upper_end(of(node), others);
    if (steady[node].empty()) rate.confidence *= kUnsteady;
    return rate;
  }
};

// All flows of a node in one direction in a round.
struct Sum {
  double alone = 0, all = 0, unsteady = 0;
  double partners = 0;  // what they could have done beside their flows with others
  int flows = 0, unsteady_flows = 0;

  void add(const Sample& s) {
    alone = static_cast<double>(s.kbps);
    all += static_cast<double>(s.together_kbps);
    if (!s.is_steady) unsteady += static_cast<double>(s.together_kbps);
    unsteady_flows += !s.is_steady;
    ++flows;
  }
  double rate() const { return flows == 1 ? alone : all; }
  bool is_steady() const {
    if (flows == 1) return unsteady_flows == 0;
    return 2 * unsteady < all || (flows >= kFan && flows <= kMostFan);
  }
};

struct Sums {
  std::vector<Sum> out, in;  // per node

  Sums(const Observed& o, std::size_t nodes) : out(nodes), in(nodes) {
    for (std::size_t f = 0; f < o.round.flows.size(); ++f) {
      out[static_cast<std::size_t>(o.round.flows[f].from)].add(o.samples[f]);
      in[static_cast<std::size_t>(o.round.flows[f].to)].add(o.samples[f]);
    }
  }
  void find_partners(const Observed& o, const NodeRates& rates) {
    for (std::size_t f = 0; f < o.round.flows.size(); ++f) {
      const auto from = static_cast<std::size_t>(o.round.flows[f].from);
      const auto to = static_cast<std::size_t>(o.round.flows[f].to);
      const auto own = static_cast<double>(o.samples[f].together_kbps);
      out[from].partners += std::max(own, rates.in[to].kbps - (in[to].all - own));
      in[to].partners += std::max(own, rates.out[from].kbps - (out[from].all - own));
    }
  }
};

void collect(const Observed& o, Seen* out, Seen* in) {
  const Sums sums(o, out->steady.size());
  for (std::size_t n = 0; n < sums.out.size(); ++n) {
    for (const auto& [sum, seen] : {std::pair{&sums.out[n], out}, std::pair{&sums.in[n], in}}) {
      if (sum->rate() <= 0) continue;
      (sum->is_steady() ? seen->steady : seen->unsteady)[n].push_back(sum->rate());
    }
  }
}

NodeRates of_rounds(int nodes, const std::vector<Observed>& all) {
  Seen out(static_cast<std::size_t>(nodes)), in(out);
  for (const Observed& o : all) collect(o, &out, &in);
  NodeRates rates;
  for (std::size_t n = 0; n < out.steady.size(); ++n) {
    rates.out.push_back(out.rate(n, in));
    rates.in.push_back(in.rate(n, out));
  }
  return rates;
}

bool is_fan(const Sum& sum) { return sum.flows >= kFan && sum.flows <= kMostFan; }

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Partners that are slower than a node hide what it can do, however often they are met: of a fast
// node among slower ones the few rounds tell in which several of them meet it at once. Bursts make
// some of these sums too high: most of what nothing hides has to say so, in both directions.
void raise_hidden(const std::vector<Observed>& all, NodeRates* rates) {
  Values sent(rates->out.size()), received(sent);
  const auto put = [](const Sum& sum, const Rate& known, std::vector<double>* values) {
    // A single flow is never more than its partner can do.
    const bool is_new =
        sum.partners >= kClearly * sum.rate() || (sum.flows > 1 && sum.rate() > kNear * known.kbps);
    if (sum.rate() > 0 && is_new && (sum.is_steady() || sum.flows >= kFan))
      values->push_back(sum.rate());
  };
  for (const Observed& o : all) {
    Sums sums(o, sent.size());
    sums.find_partners(o, *rates);
    for (std::size_t n = 0; n < sent.size(); ++n) {
      put(sums.out[n], rates->out[n], &sent[n]);
      put(sums.in[n], rates->in[n], &received[n]);
    }
  }
  for (std::size_t n = 0; n < sent.size(); ++n) {
    const double up = middle_of(sent[n]), down = middle_of(received[n]);
    Rate &out = rates->out[n], &in = rates->in[n];
    if (up > kNear * down || down > kNear * up) continue;
    if (up <= kNear * out.kbps || down <= kNear * in.kbps) continue;
    out.kbps = up;
    in.kbps = down;
  }
}

// What flows did that share their ends with none of another rack.
std::vector<Observed> within(const std::vector<Observed>& all, const std::vector<int>& rack_of) {
  std::vector<Observed> inside;
  for (const Observed& o : all) {
    std::vector<bool> leaves(rack_of.size(), false), comes(leaves);
    for (const Flow& f : o.round.flows) {
      const auto from = static_cast<std::size_t>(f.from), to = static_cast<std::size_t>(f.to);
      if (rack_of[from] != rack_of[to]) leaves[from] = comes[to] = true;
    }
    Observed& in = inside.emplace_back();
    for (std::size_t i = 0; i < o.samples.size(); ++i) {
      const auto [from, to] = o.round.flows[i];
      if (leaves[static_cast<std::size_t>(from)] || comes[static_cast<std::size_t>(to)]) continue;
      in.round.flows.push_back(o.round.flows[i]);
      in.samples.push_back(o.samples[i]);
    }
  }
  return inside;
}

}  // namespace

Rate upper_end(std::vector<double> values, const std::vector<double>& others, double power) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end(), std::greater<>());
  const auto near = [](const std::vector<double>& list, double v, double factor) {
    return std::count_if(list.begin(), list.end(),
                         [=](double x) { return x <= v * factor && x * factor >= v; });
  };
  double centre = values[values.size() / 2], best = 0;
  for (const double v : values) {
    const auto own = near(values, v, kNear);
    if (values.size() > 2 && own + near(others, v, kSupport) < 2) continue;
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

NodeRates estimate_node_rates(int nodes, const std::vector<Observed>& all,
                              const std::vector<int>& rack_of) {
  NodeRates rates = of_rounds(nodes, all);
  if (rack_of.empty()) return rates;
  const std::vector<Observed> flows_inside = within(all, rack_of);
  const NodeRates inside = of_rounds(nodes, flows_inside);
  for (std::size_t n = 0; n < rates.out.size(); ++n) {
    if (inside.out[n].kbps > rates.out[n].kbps) rates.out[n] = inside.out[n];
    if (inside.in[n].kbps > rates.in[n].kbps) rates.in[n] = inside.in[n];
  }
  raise_hidden(flows_inside, &rates);
  mark_own_limits(flows_inside, rack_of, &rates);
  raise_to_fans(all, std::numeric_limits<double>::infinity(), &rates);
  for (auto* side : {&rates.out, &rates.in}) {
    for (Rate& rate : *side) rate.is_own = false;
  }
  return rates;
}

double fastest_of(const NodeRates& rates) {
  double fastest = 0;
  for (const auto* side : {&rates.out, &rates.in}) {
    for (const Rate& rate : *side) fastest = std::max(fastest, rate.kbps);
  }
  return fastest;
}

void raise_to_fans(const std::vector<Observed>& all, double most_kbps, NodeRates* rates) {
  Values sent(rates->out.size()), received(sent);
  for (const Observed& o : all) {
    const Sums sums(o, sent.size());
    for (std::size_t n = 0; n < sent.size(); ++n) {
      if (is_fan(sums.out[n])) sent[n].push_back(sums.out[n].all);
      if (is_fan(sums.in[n])) received[n].push_back(sums.in[n].all);
    }
  }
  for (std::size_t n = 0; n < sent.size(); ++n) {
    const double up = middle_of(sent[n]), down = middle_of(received[n]);
    if (up > kNear * down || down > kNear * up) continue;
    if (rates->out[n].is_own && rates->in[n].is_own) continue;
    const double least = std::min({up, down, most_kbps});
    rates->out[n].kbps = std::max(rates->out[n].kbps, least);
    rates->in[n].kbps = std::max(rates->in[n].kbps, least);
  }
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
