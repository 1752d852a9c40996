#include "topology/probe/rack_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace riffle::probe {
namespace {

constexpr double kHeldBack = 0.86;     // below this share of its ends a flow shares something
constexpr double kOwnSigma = 0.06;     // of the logarithm of a rate limited by an end
constexpr double kSharedSigma = 0.20;  // of one flow's part of a shared link
constexpr double kMostNats = 8;        // one flow cannot say more
constexpr double kExplained = 0.30;    // a prediction within this (logarithm) counts as right
constexpr double kUplinkPower = 12;    // see upper_end
constexpr double kUsed = 0.92;         // an uplink this full is taken for the limit
constexpr double kNever = std::numeric_limits<double>::infinity();

bool is_pairs(const Round& round, int nodes) {
  std::vector<bool> sends(static_cast<std::size_t>(nodes), false), receives(sends);
  for (const Flow& f : round.flows) {
    if (sends[static_cast<std::size_t>(f.from)] || receives[static_cast<std::size_t>(f.to)]) {
      return false;
    }
    sends[static_cast<std::size_t>(f.from)] = receives[static_cast<std::size_t>(f.to)] = true;
  }
  return true;
}

double nats(double seen, double predicted, bool is_shared) {
  const double sigma = is_shared ? kSharedSigma : kOwnSigma;
  const double error = std::log(seen / predicted) / sigma;
  return std::min(kMostNats, error * error / 2) + std::log(sigma / kOwnSigma);
}

double limit(double kbps) { return kbps > 0 ? kbps : kNever; }

}  // namespace

RackModel::RackModel(int nodes, const NodeRates& rates, const std::vector<Observed>& all)
    : nodes_(nodes) {
  std::size_t held = 0;
  for (const Observed& o : all) {
    if (!is_pairs(o.round, nodes)) continue;
    PairRound round;
    std::size_t held_here = 0;
    for (std::size_t f = 0; f < o.round.flows.size(); ++f) {
      const auto [from, to] = o.round.flows[f];
      const double cap = std::min(rates.out[static_cast<std::size_t>(from)].kbps,
                                  rates.in[static_cast<std::size_t>(to)].kbps);
      const auto seen = static_cast<double>(o.samples[f].kbps);
      if (cap <= 0 || seen <= 0) continue;
      round.flows.push_back({from, to, cap, seen, seen < kHeldBack * cap});
      held_here += round.flows.back().is_held_back ? 1 : 0;
    }
    if (round.flows.empty()) continue;
    std::stable_sort(round.flows.begin(), round.flows.end(),
                     [](const Sighting& a, const Sighting& b) { return a.cap < b.cap; });
    round.held_back = static_cast<double>(held_here) / static_cast<double>(round.flows.size());
    held += held_here;
    sightings_ += round.flows.size();
    rounds_.push_back(std::move(round));
  }
  if (sightings_ > 0) held_back_ = static_cast<double>(held) / static_cast<double>(sightings_);
}

// What all flows through an uplink carried together is never more than its rate, and equals it in
// the rounds in which it held them back.
std::vector<Uplink> RackModel::uplinks(const std::vector<int>& rack_of, int racks) const {
  struct Passing {
    double seen = 0, cap = 0;
  };
  const auto count = static_cast<std::size_t>(racks);
  std::vector<std::vector<double>> carried(2 * count);  // ups, then downs
  std::vector<double> fullest_held(2 * count, 0);
  std::vector<Passing> passing(2 * count);
  for (const PairRound& round : rounds_) {
    std::fill(passing.begin(), passing.end(), Passing{});
    for (const Sighting& s : round.flows) {
      const auto a = static_cast<std::size_t>(rack_of[static_cast<std::size_t>(s.from)]);
      const auto b = static_cast<std::size_t>(rack_of[static_cast<std::size_t>(s.to)]);
      if (a == b) continue;
      for (const std::size_t link : {a, count + b}) {
        passing[link].seen += s.seen;
        passing[link].cap += s.cap;
      }
    }
    for (std::size_t link = 0; link < passing.size(); ++link) {
      const Passing& p = passing[link];
      if (p.cap <= 0) continue;
      carried[link].push_back(p.seen);
      if (p.seen < kHeldBack * p.cap) fullest_held[link] = std::max(fullest_held[link], p.seen);
    }
  }
  std::vector<Uplink> links(count);
  for (std::size_t r = 0; r < count; ++r) {
    const auto rate = [&](std::size_t link) {
      const double most = upper_end(carried[link], {}, kUplinkPower).kbps;
      return fullest_held[link] >= kUsed * most ? most : 0;
    };
    links[r] = {rate(r), rate(count + r)};
  }
  return links;
}

struct RackModel::Shares {
  std::vector<double> predicted;
  std::vector<bool> is_shared;
  std::vector<double> left;  // per link: rate not yet given away
  std::vector<int> open;     // per link: flows whose share is not fixed yet
};

// Progressive filling: all open flows rise together; a flow that meets its ends' rate, or a link
// that is full, stays. Flows come in the order of their caps.
void RackModel::predict(const PairRound& round, const std::vector<int>& rack_of,
                        const std::vector<Uplink>& uplinks, Shares* s) const {
  const std::size_t racks = uplinks.size(), flows = round.flows.size();
  s->predicted.assign(flows, -1);
  s->is_shared.assign(flows, false);
  s->left.assign(2 * racks, kNever);
  s->open.assign(2 * racks, 0);
  for (std::size_t r = 0; r < racks; ++r) {
    s->left[r] = limit(uplinks[r].up_kbps);
    s->left[racks + r] = limit(uplinks[r].down_kbps);
  }
  const auto ends = [&](const Sighting& f) {
    const auto a = static_cast<std::size_t>(rack_of[static_cast<std::size_t>(f.from)]);
    const auto b = static_cast<std::size_t>(rack_of[static_cast<std::size_t>(f.to)]);
    return std::pair(a, a == b ? a : racks + b);  // equal: stays inside
  };
  for (std::size_t i = 0; i < flows; ++i) {
    const auto [up, down] = ends(round.flows[i]);
    if (up == down) {
      s->predicted[i] = round.flows[i].cap;
    } else {
      ++s->open[up];
      ++s->open[down];
    }
  }
  const auto fix = [&](std::size_t i, double rate, bool is_shared) {
    const auto [up, down] = ends(round.flows[i]);
    s->predicted[i] = rate;
    s->is_shared[i] = is_shared;
    for (const std::size_t link : {up, down}) {
      s->left[link] = std::max(0.0, s->left[link] - rate);
      --s->open[link];
    }
  };
  std::size_t next = 0;  // the open flow of the smallest cap
  while (true) {
    while (next < flows && s->predicted[next] >= 0) ++next;
    if (next == flows) return;
    std::size_t tightest = 0;
    double level = kNever;
    for (std::size_t link = 0; link < s->left.size(); ++link) {
      if (s->open[link] == 0) continue;
      const double share = s->left[link] / s->open[link];
      if (share < level) {
        level = share;
        tightest = link;
      }
    }
    if (round.flows[next].cap <= level) {
      fix(next, round.flows[next].cap, false);
      continue;
    }
    for (std::size_t i = next; i < flows; ++i) {
      const auto [up, down] = ends(round.flows[i]);
      if (s->predicted[i] < 0 && (up == tightest || down == tightest)) fix(i, level, true);
    }
  }
}

template <class Visit>
void RackModel::replay(const std::vector<int>& rack_of, const std::vector<Uplink>& uplinks,
                       Visit visit) const {
  Shares shares;
  for (const PairRound& round : rounds_) {
    predict(round, rack_of, uplinks, &shares);
    for (std::size_t i = 0; i < round.flows.size(); ++i) {
      visit(round.flows[i], std::max(shares.predicted[i], 1.0), shares.is_shared[i]);
    }
  }
}

// Minimum description length: which rack each node stands in, and two rates per rack.
double RackModel::price(int racks) const {
  if (racks < 2) return 0;
  const double per_rate = 0.5 * std::log(static_cast<double>(std::max<std::size_t>(sightings_, 2)));
  return nodes_ * std::log(static_cast<double>(racks)) + 2 * racks * per_rate;
}

double RackModel::cost(const std::vector<int>& rack_of, int racks) const {
  double sum = price(racks);
  replay(rack_of, uplinks(rack_of, racks), [&](const Sighting& s, double predicted, bool shared) {
    sum += nats(s.seen, predicted, shared);
  });
  return sum;
}

std::vector<int> RackModel::worst_first(const std::vector<int>& rack_of, int racks) const {
  std::vector<double> misfit(static_cast<std::size_t>(nodes_), 0);
  replay(rack_of, uplinks(rack_of, racks), [&](const Sighting& s, double predicted, bool shared) {
    for (const int n : {s.from, s.to}) {
      misfit[static_cast<std::size_t>(n)] += nats(s.seen, predicted, shared);
    }
  });
  std::vector<int> order(static_cast<std::size_t>(nodes_));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return misfit[static_cast<std::size_t>(a)] > misfit[static_cast<std::size_t>(b)];
  });
  return order;
}

RackFit RackModel::fit(const std::vector<int>& rack_of, int racks) const {
  RackFit fit;
  fit.cost = cost(rack_of, racks);
  fit.uplinks = uplinks(rack_of, racks);
  std::vector<double> right(static_cast<std::size_t>(racks), 0), all(right);
  replay(rack_of, fit.uplinks, [&](const Sighting& s, double predicted, bool) {
    const bool is_right = std::abs(std::log(s.seen / predicted)) < kExplained;
    for (const int node : {s.from, s.to}) {
      const auto rack = static_cast<std::size_t>(rack_of[static_cast<std::size_t>(node)]);
      all[rack] += 1;
      right[rack] += is_right ? 1 : 0;
    }
  });
  for (std::size_t r = 0; r < right.size(); ++r) {
    fit.explained.push_back(all[r] > 0 ? right[r] / all[r] : 0);
  }
  return fit;
}

}  // namespace riffle::probe
