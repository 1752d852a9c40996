#include "topology/plan/mixture.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "topology/plan/packing.h"
#include "topology/plan/shares.h"

namespace riffle {
namespace {

constexpr double kPriceOfParts = 1e-3;    // at most so much time is given for fewer messages
constexpr double kLeastPart = 1.0 / 512;  // of the buffer; less is not worth its messages
constexpr int kMaxRounds = 40;
constexpr std::size_t kPivotsPerRound = 4000;
constexpr double kTimeForSlack = 3e-3;  // at most so much time is given for idler links
constexpr double kAtLimit = 1e-6;       // the price of a resource that is used up
constexpr int kSlackRounds = 2;
constexpr int kSlackHalvings = 8;
constexpr std::size_t kMaxKindsForSlack = 32;  // with more, solving so often takes too long

// Racks alike in every respect share every load evenly, so one of them stands for all.
struct NodeKind {
  std::vector<int> racks;
  double members = 0, rate = 0, link = 0;
  double count() const { return static_cast<double>(racks.size()); }
};

std::vector<NodeKind> kinds_of(const FabricView& view) {
  std::vector<NodeKind> kinds;
  for (int r = 0; r < static_cast<int>(view.racks().size()); ++r) {
    const RackView& rack = view.racks()[r];
    NodeKind kind{{r}, static_cast<double>(rack.members.size()), 0, 0};
    for (int n : rack.members) kind.rate += view.rate_kbps(n);
    kind.link = std::min(std::min(rack.up_kbps, rack.down_kbps), kind.rate);
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const NodeKind& k) {
      return k.members == kind.members && k.rate == kind.rate && k.link == kind.link;
    });
    if (same == kinds.end()) {
      if (kinds.size() == kMaxRackKinds) return {};
      kinds.push_back(std::move(kind));
    } else {
      same->racks.push_back(r);
    }
  }
  return kinds;
}

struct Strategy {
  std::vector<bool> apart;  // by kind
  std::size_t centre = 0;   // kind
};

// The linear program: resources are, per kind, the uplinks and the nodes, and last a link that
// carries every unit once in the least time. `limits` says which part of each may be used.
class Program {
 public:
  Program(const FabricView& view, std::vector<NodeKind> kinds, std::vector<double> limits)
      : kinds_(std::move(kinds)), limits_(std::move(limits)), packing_(limits_.size()) {
    for (int n = 0; n < view.size(); ++n) floor_ = std::max(floor_, 1 / view.rate_kbps(n));
    for (const NodeKind& k : kinds_) {
      floor_ = std::max(floor_, 1 / k.link);
      nodes_ += k.members * k.count();
    }
    // Loads near 1 keep the simplex method's tolerances meaningful.
    scale_ = floor_;
    for (bool all : {false, true}) {
      for (std::size_t c = 0; c < kinds_.size(); ++c) {
        add({std::vector<bool>(kinds_.size(), all), c});
      }
    }
  }
  // The same with other limits; it begins with the strategies that are known by now.
  Program with(const FabricView& view, std::vector<double> limits) const {
    Program other(view, kinds_, std::move(limits));
    for (const Strategy& s : strategies_) {
      if (!other.knows(s)) other.add(s);
    }
    return other;
  }

  void run() {
    for (int round = 0; round < kMaxRounds; ++round) {
      packing_.solve(kPivotsPerRound);
      if (!generate()) return;
    }
  }

  const std::vector<NodeKind>& kinds() const { return kinds_; }
  const std::vector<double>& limits() const { return limits_; }
  std::vector<double> prices() const { return packing_.prices(); }
  const std::vector<Strategy>& strategies() const { return strategies_; }
  // Parts of the buffer by strategy.
  std::vector<double> parts() const {
    std::vector<double> x = packing_.amounts();
    const double sum = std::accumulate(x.begin(), x.end(), 0.0);
    for (double& part : x) part /= sum;
    return x;
  }
  // Buffers per kbit/s.
  double time() const {
    const std::vector<double> x = packing_.amounts();
    return scale_ / std::accumulate(x.begin(), x.end(), 0.0);
  }

 private:
  bool knows(const Strategy& s) const {
    return std::any_of(strategies_.begin(), strategies_.end(), [&](const Strategy& t) {
      return t.centre == s.centre && t.apart == s.apart;
    });
  }
  double components(const Strategy& s, std::size_t kind) const {
    return s.apart[kind] ? kinds_[kind].members : 1;
  }

  void add(const Strategy& s) {
    double all = 0;
    for (std::size_t i = 0; i < kinds_.size(); ++i) all += kinds_[i].count() * components(s, i);
    std::vector<double> load;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const NodeKind& kind = kinds_[i];
      const double k = components(s, i);
      double uplink = kind.count() * k;
      double nodes = kind.count() * (2 * kind.members - k);
      if (i == s.centre) {
        uplink += all - 2 * k;
        nodes += all - 2;
      }
      const double share = scale_ * kind.count();
      load.push_back(kind.link < kind.rate ? uplink / (share * kind.link) : 0);
      load.push_back(nodes / (share * kind.rate));
    }
    load.push_back(floor_ / scale_);
    for (std::size_t i = 0; i < load.size(); ++i) load[i] /= limits_[i];
    packing_.add(std::move(load), 1 - kPriceOfParts * all / nodes_);
    strategies_.push_back(s);
  }

  // Adds for every centre the set that the present prices make best. False if none improves.
  bool generate() {
    const std::vector<double> prices = packing_.prices();
    const auto price = [&](std::size_t resource, double kbps) {
      return prices[resource] / (limits_[resource] * scale_ * kbps);
    };
    const auto uplink = [&](std::size_t i) {
      const NodeKind& k = kinds_[i];
      return k.link < k.rate ? price(2 * i, k.count() * k.link) : 0;
    };
    const auto nodes = [&](std::size_t i) {
      return price(2 * i + 1, kinds_[i].count() * kinds_[i].rate);
    };
    bool added = false;
    for (std::size_t c = 0; c < kinds_.size(); ++c) {
      Strategy s{std::vector<bool>(kinds_.size(), false), c};
      for (std::size_t i = 0; i < kinds_.size(); ++i) {
        const double per_sum = uplink(i) - nodes(i) + uplink(c) + nodes(c);
        s.apart[i] = i != c && kinds_[i].members > 1 && per_sum + kPriceOfParts / nodes_ < 0;
      }
      if (knows(s)) continue;
      add(s);
      added = true;
    }
    return added;
  }

  std::vector<NodeKind> kinds_;
  std::vector<double> limits_;  // by resource
  Packing packing_;
  std::vector<Strategy> strategies_;
  double floor_ = 0, scale_ = 1, nodes_ = 0;
};

// The part of each resource that no mixture can do without in this time: a unit crosses an uplink
// at least once, and every node at least once.
std::vector<double> least_uses(const std::vector<NodeKind>& kinds, double time) {
  std::vector<double> least;
  for (const NodeKind& k : kinds) {
    least.push_back(std::min(1.0, 1 / (time * k.link)));
    least.push_back(std::min(1.0, k.members / (time * k.rate)));
  }
  least.push_back(1);
  return least;
}

// The linear program is content with any mixture of the least time, and its solutions are corners:
// they use up links that need not be busy. Links that share fairly between flows of unequal weight
// never come to full use, so of all the mixtures of this time one is wanted that leaves as much
// slack as possible. The resources whose price says that they must be used up keep their limits,
// all others give up the same part of what they carry beyond the least, as much as the time
// allows; then again with those that have become tight.
Program with_slack(const FabricView& view, Program program) {
  const double time = program.time() * (1 + kTimeForSlack);
  const std::vector<double> least = least_uses(program.kinds(), time);
  std::vector<bool> is_tight(least.size());
  for (int round = 0; round < kSlackRounds; ++round) {
    const std::vector<double> prices = program.prices();
    for (std::size_t i = 0; i < prices.size(); ++i) {
      is_tight[i] = is_tight[i] || prices[i] > kAtLimit || program.limits()[i] <= least[i];
    }
    const std::vector<double> before = program.limits();
    double too_little = 0, enough = 1;
    for (int i = 0; i < kSlackHalvings; ++i) {
      const double middle = (too_little + enough) / 2;
      std::vector<double> limits = before;
      for (std::size_t r = 0; r < limits.size(); ++r) {
        if (!is_tight[r]) limits[r] = least[r] + (limits[r] - least[r]) * middle;
      }
      Program tighter = program.with(view, std::move(limits));
      tighter.run();
      if (tighter.time() <= time) {
        enough = middle;
        program = std::move(tighter);
      } else {
        too_little = middle;
      }
    }
  }
  return program;
}

// Strategies with the same racks apart become one segment. Whether the centre's own rack counts as
// apart makes no difference to any load if it is the only one of its kind, so it joins whatever
// segment there is.
std::vector<MixtureSegment> segments_of(const FabricView& view, const Program& program) {
  const auto& kinds = program.kinds();
  const std::vector<double> parts = program.parts();
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return parts[a] > parts[b]; });

  std::vector<std::vector<bool>> sets;  // by kind, parallel to segments
  std::vector<MixtureSegment> segments;
  for (std::size_t j : order) {
    if (parts[j] < kLeastPart) break;
    const Strategy& s = program.strategies()[j];
    const bool free = kinds[s.centre].racks.size() == 1;
    const auto alike = [&](const std::vector<bool>& set) {
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i].members > 1 && set[i] != s.apart[i] && !(free && i == s.centre)) return false;
      }
      return true;
    };
    const auto at = std::find_if(sets.begin(), sets.end(), alike);
    const std::size_t index = static_cast<std::size_t>(at - sets.begin());
    if (at == sets.end()) {
      sets.push_back(s.apart);
      MixtureSegment fresh{0, std::vector<bool>(view.racks().size()),
                           std::vector<double>(view.racks().size(), 0.0)};
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        for (int r : kinds[i].racks) fresh.apart[r] = s.apart[i];
      }
      segments.push_back(std::move(fresh));
    }
    segments[index].part += parts[j];
    for (int r : kinds[s.centre].racks) {
      segments[index].centre[r] += parts[j] / kinds[s.centre].count();
    }
  }
  double sum = 0;
  for (MixtureSegment& s : segments) {
    for (double& c : s.centre) c /= s.part;
    sum += s.part;
  }
  for (MixtureSegment& s : segments) s.part /= sum;
  return segments;
}

}  // namespace

Mixture best_mixture(const FabricView& view) {
  std::vector<NodeKind> kinds = kinds_of(view);
  if (kinds.empty()) return {};
  const bool seeks_slack = kinds.size() <= kMaxKindsForSlack;
  const std::vector<double> all(2 * kinds.size() + 1, 1.0);
  Program program(view, std::move(kinds), all);
  program.run();
  if (seeks_slack) program = with_slack(view, std::move(program));
  Mixture mixture{segments_of(view, program), std::vector<double>(view.size())};
  const double time = program.time();
  for (const RackView& rack : view.racks()) {
    std::vector<double> spare;
    for (int n : rack.members) spare.push_back(std::max(0.0, time * view.rate_kbps(n) - 1));
    const bool none = std::all_of(spare.begin(), spare.end(), [](double w) { return w <= 0; });
    spare = none ? even_weights(spare.size()) : normalized(std::move(spare), kSliver / 4);
    for (std::size_t j = 0; j < spare.size(); ++j) mixture.inside[rack.members[j]] = spare[j];
  }
  return mixture;
}

}  // namespace riffle
