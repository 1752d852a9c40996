#include "topology/probe/rack_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace riffle::probe {
namespace {

constexpr double kHeldBack = 0.86;  // below this share of its ends a flow shares something
// Of the logarithm of a rate that an end limits: at least; more where the flows themselves say so.
constexpr double kOwnSigma = 0.06;
constexpr double kSpreadShare = 0.75;  // that the quantile of errors is taken at
constexpr double kSpreadSigmas = 1.15;
// ... of one flow's part of a shared link. Over some ten milliseconds TCP shares it unevenly, so
// that one flow has several times what another has; that each stays below its ends is what tells.
constexpr double kSharedSigma = 0.6;
constexpr double kSumSigma = 0.15;       // ... of all that a full link carries
constexpr double kUplinkPower = 12;      // see upper_end
constexpr double kFullPower = 2;         // ... of rounds in which the uplink was full
constexpr double kLeftWhereFull = 0.01;  // of an uplink's rate is left at most where it is full
constexpr double kUsed = 0.92;           // an uplink this full is taken for the limit
constexpr double kNever = std::numeric_limits<double>::infinity();

double nats(double error, double sigma) {
  const double in_sigma = error / sigma;
  return std::min(RackModel::kMostNats, in_sigma * in_sigma / 2) + std::log(sigma / kOwnSigma);
}

// On a network of shallow queues flows that share nothing stray as well.
double spread(std::vector<double>* errors) {
  if (errors->empty()) return kOwnSigma;
  const auto count = static_cast<double>(errors->size());
  const auto at = errors->begin() + static_cast<std::ptrdiff_t>(kSpreadShare * count);
  std::nth_element(errors->begin(), at, errors->end());
  return std::clamp(*at / kSpreadSigmas, kOwnSigma, kSharedSigma);
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
      const auto together = static_cast<double>(o.samples[f].together_kbps);
      round.flows.push_back({from, to, cap, seen, together, seen < kHeldBack * cap});
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
std::vector<Uplink> RackModel::most_carried(const std::vector<int>& rack_of, int racks) const {
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
        passing[link].seen += s.together;
        passing[link].cap += s.cap;
      }
    }
    for (std::size_t link = 0; link < passing.size(); ++link) {
      const Passing& p = passing[link];
      if (p.cap <= 0 || p.seen <= 0) continue;  // all of it came too late to be counted
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
  std::vector<double> predicted;  // -1: not yet
  std::vector<int> bottleneck;    // up of a rack, racks + down; -1: an end
  std::vector<double> left;       // per link: rate not yet given away
  std::vector<int> open;          // per link: flows whose share is not fixed yet
  double error(std::size_t flow, double seen) const {
    return std::abs(std::log(seen / predicted[flow]));
  }
};

// Progressive filling: all open flows rise together; a flow that meets its ends' rate, or a link
// that is full, stays. Flows come in the order of their caps.
void RackModel::predict(const PairRound& round, const std::vector<int>& rack_of,
                        const std::vector<Uplink>& uplinks, Shares* s) const {
  const std::size_t racks = uplinks.size(), flows = round.flows.size();
  s->predicted.assign(flows, -1);
  s->bottleneck.assign(flows, -1);
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
  const auto fix = [&](std::size_t i, double rate, int bottleneck) {
    const auto [up, down] = ends(round.flows[i]);
    s->predicted[i] = std::max(rate, 1.0);
    s->bottleneck[i] = bottleneck;
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
      fix(next, round.flows[next].cap, -1);
      continue;
    }
    for (std::size_t i = next; i < flows; ++i) {
      const auto [up, down] = ends(round.flows[i]);
      if (s->predicted[i] < 0 && (up == tightest || down == tightest))
        fix(i, level, static_cast<int>(tightest));
    }
  }
}

// The most is often too much: a full token bucket lends a link more than its rate, for a whole
// round where other links hold the flows to a little more, and what waited behind a lost packet
// arrives all at once. In the rounds in which the link was full by its rate so far, what it carried
// strays to both sides of what it can do.
std::vector<Uplink> RackModel::uplinks(const std::vector<int>& rack_of, int racks) const {
  std::vector<Uplink> links = most_carried(rack_of, racks);
  const auto count = static_cast<std::size_t>(racks);
  const auto rate = [&](std::size_t link) -> double& {
    return link < count ? links[link].up_kbps : links[link - count].down_kbps;
  };
  std::vector<std::vector<double>> while_full(2 * count);  // ups, then downs
  std::vector<double> carried(2 * count);
  Shares shares;
  for (const PairRound& round : rounds_) {
    predict(round, rack_of, links, &shares);
    std::fill(carried.begin(), carried.end(), 0);
    for (const Sighting& s : round.flows) {
      const auto a = static_cast<std::size_t>(rack_of[static_cast<std::size_t>(s.from)]);
      const auto b = static_cast<std::size_t>(rack_of[static_cast<std::size_t>(s.to)]);
      if (a == b) continue;
      carried[a] += s.together;
      carried[count + b] += s.together;
    }
    for (std::size_t link = 0; link < carried.size(); ++link) {
      if (carried[link] > 0 && shares.left[link] <= kLeftWhereFull * rate(link))
        while_full[link].push_back(carried[link]);
    }
  }
  for (std::size_t link = 0; link < carried.size(); ++link) {
    if (while_full[link].size() > 1) rate(link) = upper_end(while_full[link], {}, kFullPower).kbps;
  }
  return links;
}

template <class Visit>
void RackModel::replay(const std::vector<int>& rack_of, int racks, Visit visit) const {
  const std::vector<Uplink> links = most_carried(rack_of, racks);
  Shares shares;
  for (const PairRound& round : rounds_) {
    predict(round, rack_of, links, &shares);
    visit(round, shares);
  }
}

// Minimum description length: which rack each node stands in, and two rates per rack.
double RackModel::price(int racks) const {
  if (racks < 2) return 0;
  const double per_rate = 0.5 * std::log(static_cast<double>(std::max<std::size_t>(sightings_, 2)));
  return nodes_ * std::log(static_cast<double>(racks)) + 2 * racks * per_rate;
}

// Flows that share a link may divide it as they like, but together they fill it.
double RackModel::cost(const std::vector<int>& rack_of, int racks) const {
  struct Group {
    double seen = 0, predicted = 0, nats = 0;
    int flows = 0;
  };
  double sum = price(racks);
  std::vector<double> own;
  std::vector<Group> groups;
  replay(rack_of, racks, [&](const PairRound& round, const Shares& shares) {
    groups.assign(2 * static_cast<std::size_t>(racks), {});
    for (std::size_t i = 0; i < round.flows.size(); ++i) {
      const double seen = round.flows[i].seen;
      if (shares.bottleneck[i] < 0) {
        own.push_back(shares.error(i, seen));
        continue;
      }
      Group& g = groups[static_cast<std::size_t>(shares.bottleneck[i])];
      g.seen += round.flows[i].together;
      g.predicted += shares.predicted[i];
      g.nats += nats(shares.error(i, seen), kSharedSigma);
      ++g.flows;
    }
    for (const Group& g : groups) {
      if (g.flows == 0) continue;
      sum += nats(std::log(g.seen / g.predicted), kSumSigma) + g.nats * (g.flows - 1) / g.flows;
    }
  });
  const double sigma = spread(&own);
  for (const double error : own) sum += nats(error, sigma);
  return sum;
}

std::vector<int> RackModel::worst_first(const std::vector<int>& rack_of, int racks) const {
  std::vector<double> misfit(static_cast<std::size_t>(nodes_), 0);
  replay(rack_of, racks, [&](const PairRound& round, const Shares& shares) {
    for (std::size_t i = 0; i < round.flows.size(); ++i) {
      const Sighting& s = round.flows[i];
      const double sigma = shares.bottleneck[i] < 0 ? kOwnSigma : kSharedSigma;
      for (const int n : {s.from, s.to}) {
        misfit[static_cast<std::size_t>(n)] += nats(shares.error(i, s.seen), sigma);
      }
    }
  });
  std::vector<int> order(static_cast<std::size_t>(nodes_));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return misfit[static_cast<std::size_t>(a)] > misfit[static_cast<std::size_t>(b)];
  });
  return order;
}

}  // namespace riffle::probe
