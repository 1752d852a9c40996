// Pairs move as little as groups can (each member one buffer), so a schedule of pairs is limited by
// nothing but its narrow links; those are rationed. A lane crosses racks in every q-th step only,
// and the lanes do so in turn: at any time 1/q of the chunks is on the uplinks, next to the other
// chunks' traffic inside the racks. A slow node is treated alike.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "topology/base/seeded_random.h"
#include "topology/plan/schedules/families.h"

namespace riffle {
namespace {

constexpr double kSlow = 0.6;  // of the fastest node of its rack
constexpr int kMostSlow = 4;   // a slow node meets others at least every 4th step
constexpr std::size_t kWantedSteps = 48;
constexpr std::size_t kWantedLanes = 16;

constexpr std::size_t kTournament = 8;  // above it random pairs mix faster

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

// Disjoint pairs of positions 0 .. n-1, another matching every round; one stays alone if n is odd.
// In powers of two the rounds are the axes of the cube, exact after log2 n of them; else the rounds
// of a tournament (circle method) or, for many, random ones.
Pairs matching(std::size_t n, std::size_t round, SeededRandom& random) {
  Pairs pairs;
  if (n < 2) return pairs;
  if (std::has_single_bit(n)) {
    const auto axes = static_cast<std::size_t>(std::countr_zero(n));
    const std::size_t bit = std::size_t{1} << (round % axes);
    for (std::size_t i = 0; i < n; ++i) {
      if ((i & bit) == 0) pairs.emplace_back(i, i | bit);
    }
    return pairs;
  }
  if (n > kTournament) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    random.shuffle(order);
    for (std::size_t i = 0; i + 1 < n; i += 2) pairs.emplace_back(order[i], order[i + 1]);
    return pairs;
  }
  const std::size_t seats = n + n % 2, turning = seats - 1;
  const std::size_t r = round % turning;
  const auto add = [&](std::size_t a, std::size_t b) {
    if (a < n && b < n) pairs.emplace_back(std::min(a, b), std::max(a, b));
  };
  add(r, seats - 1);
  for (std::size_t i = 1; i < seats / 2; ++i) {
    add((r + i) % turning, (r + turning - i) % turning);
  }
  return pairs;
}

std::size_t rounds_of(std::size_t n) {
  if (n < 2) return 1;
  if (std::has_single_bit(n)) return static_cast<std::size_t>(std::countr_zero(n));
  return std::min(n - 1 + n % 2, kWantedSteps);
}

struct SlowNode {
  int node;
  int every;  // takes part in every such step
  int phase;
};

struct RackLabels {
  std::vector<int> fast;  // in the order of their labels
  std::vector<SlowNode> slow;
  std::size_t rounds = 0;        // of pairs inside, done
  std::size_t next_partner = 0;  // label of the next one to meet slow nodes
};

int slowness(double rate, double fastest) {
  if (rate >= kSlow * fastest) return 1;
  return static_cast<int>(
      std::clamp(std::lround(fastest / rate), 2L, static_cast<long>(kMostSlow)));
}

class Rationing {
 public:
  Rationing(const FabricView& view, const Ration& ration, std::uint64_t seed)
      : view_(view), ration_(ration), random_(seed) {
    if (ration.crossing == Crossing::kNone) {
      // Racks do not matter here.
      std::vector<int> all(static_cast<std::size_t>(view.size()));
      std::iota(all.begin(), all.end(), 0);
      add_rack(all);
    } else {
      for (const RackView& rack : view.racks()) add_rack(rack.members);
    }
  }

  NodeGroups step(std::size_t t) {
    groups_.clear();
    std::vector<std::vector<int>> free;
    for (RackLabels& rack : racks_) free.push_back(meet_slow(rack, t));
    const auto every = static_cast<std::size_t>(ration_.every);
    if (ration_.crossing != Crossing::kNone && t % every == every - 1) cross(t / every, free);
    for (std::size_t r = 0; r < racks_.size(); ++r) {
      pair_up(free[r], racks_[r].rounds++);
    }
    return std::move(groups_);
  }

  // Lanes of which the same part crosses, and meets each slow node, in every step.
  int turn() const {
    int turn = ration_.every;
    for (const RackLabels& rack : racks_) {
      for (const SlowNode& s : rack.slow) turn = std::lcm(turn, s.every);
    }
    return turn;
  }

  // Steps after which it may start again: pairs of nodes and of racks have gone through their
  // rounds.
  std::size_t rounds() const {
    std::size_t most = rounds_of(racks_.size()) * static_cast<std::size_t>(ration_.every);
    for (const RackLabels& rack : racks_) most = std::max(most, rounds_of(rack.fast.size()));
    return most;
  }

 private:
  void add_rack(const std::vector<int>& members) {
    RackLabels rack;
    double fastest = 0;
    for (int m : members) fastest = std::max(fastest, view_.rate_kbps(m));
    int slow = 0;
    for (int m : members) {
      const int every = std::min(ration_.slow, slowness(view_.rate_kbps(m), fastest));
      if (every > 1) {
        rack.slow.push_back({m, every, slow++ % every});
      } else {
        rack.fast.push_back(m);
      }
    }
    random_.shuffle(rack.fast);
    rack.rounds = random_.below(4);
    racks_.push_back(std::move(rack));
  }

  // Groups with the slow nodes whose turn it is; the fast nodes that are left.
  std::vector<int> meet_slow(RackLabels& rack, std::size_t t) {
    std::vector<int> present;
    std::size_t others = 0;  // that each group needs, for two members on average
    for (const SlowNode& s : rack.slow) {
      if ((t + static_cast<std::size_t>(s.phase)) % static_cast<std::size_t>(s.every) != 0)
        continue;
      present.push_back(s.node);
      others = std::max(others, static_cast<std::size_t>(s.every));
    }
    if (present.empty() || rack.fast.empty()) return rack.fast;
    others = std::min(others, rack.fast.size());
    const std::size_t count = std::min(present.size(), rack.fast.size() / others);
    std::vector<bool> is_taken(rack.fast.size(), false);
    for (std::size_t g = 0; g < count; ++g) {
      std::vector<int> group;
      for (std::size_t i = 0; i < others; ++i) {
        const std::size_t label = rack.next_partner++ % rack.fast.size();
        group.push_back(rack.fast[label]);
        is_taken[label] = true;
      }
      for (std::size_t s = g; s < present.size(); s += count) group.push_back(present[s]);
      groups_.push_back(std::move(group));
    }
    std::vector<int> left;
    for (std::size_t i = 0; i < rack.fast.size(); ++i) {
      if (!is_taken[i]) left.push_back(rack.fast[i]);
    }
    return left;
  }

  // Racks meet in pairs, others every time; takes those who cross out of `free`.
  void cross(std::size_t turn, std::vector<std::vector<int>>& free) {
    for (auto [a, b] : matching(racks_.size(), turn, random_)) {
      if (turn / std::max<std::size_t>(1, racks_.size() - 1) % 2 == 1) std::swap(a, b);
      switch (ration_.crossing) {
        case Crossing::kNone:
          break;
        case Crossing::kHalf:
          cross_pairs(free[a], free[b],
                      [](std::size_t n) { return std::max<std::size_t>(1, n / 2); });
          break;
        case Crossing::kAll:
          cross_pairs(free[a], free[b], [](std::size_t n) { return n; });
          break;
        case Crossing::kGuests:
          host(free[a], free[b]);
          break;
      }
    }
  }

  template <class Count>
  void cross_pairs(std::vector<int>& a, std::vector<int>& b, const Count& count) {
    const std::size_t n = std::min(a.size(), b.size());
    if (n == 0) return;
    random_.shuffle(a);
    random_.shuffle(b);
    std::size_t pairs = count(n);
    // No node is to stay alone, if it can be helped.
    if (pairs < n && (a.size() - pairs == 1 || b.size() - pairs == 1)) ++pairs;
    for (std::size_t i = 0; i < pairs; ++i) {
      groups_.push_back({a.back(), b.back()});
      a.pop_back();
      b.pop_back();
    }
  }

  // Pairs of one rack, each with a guest from the other.
  void host(std::vector<int>& hosts, std::vector<int>& visitors) {
    random_.shuffle(hosts);
    random_.shuffle(visitors);
    std::size_t guests = std::min(hosts.size() / 2, visitors.size());
    if (visitors.size() - guests == 1 && guests > 1) --guests;
    for (std::size_t i = 0; i < guests; ++i) {
      const int one = hosts.back();
      hosts.pop_back();
      groups_.push_back({one, hosts.back(), visitors.back()});
      hosts.pop_back();
      visitors.pop_back();
    }
  }

  void pair_up(const std::vector<int>& nodes, std::size_t round) {
    if (nodes.empty()) return;
    std::vector<bool> is_paired(nodes.size(), false);
    for (const auto& [a, b] : matching(nodes.size(), round, random_)) {
      groups_.push_back({nodes[a], nodes[b]});
      is_paired[a] = is_paired[b] = true;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!is_paired[i]) join(nodes[i]);
    }
  }

  // The odd one: to the smallest group that has a node of its rack, so that it crosses nothing by
  // itself; to any if there is none.
  void join(int node) {
    std::vector<int>* best = nullptr;
    bool best_is_near = false;
    for (std::vector<int>& group : groups_) {
      const bool is_near = std::any_of(group.begin(), group.end(), [&](int m) {
        return view_.rack_of(m) == view_.rack_of(node);
      });
      if (best != nullptr &&
          (best_is_near > is_near || (best_is_near == is_near && best->size() <= group.size()))) {
        continue;
      }
      best = &group;
      best_is_near = is_near;
    }
    if (best == nullptr) {
      groups_.push_back({node});
    } else {
      best->push_back(node);
    }
  }

  const FabricView& view_;
  Ration ration_;
  SeededRandom random_;
  std::vector<RackLabels> racks_;
  NodeGroups groups_;
};

std::string name_of(const Ration& ration) {
  std::string name = "pairs";
  const std::string every = ", every " + std::to_string(ration.every);
  switch (ration.crossing) {
    case Crossing::kNone:
      break;
    case Crossing::kHalf:
      name += every + " steps half of a rack crosses";
      break;
    case Crossing::kAll:
      name += every + " steps the whole rack crosses";
      break;
    case Crossing::kGuests:
      name += every + " steps guests cross";
      break;
  }
  if (ration.slow > 1) name += ", slow nodes every " + std::to_string(ration.slow);
  return name;
}

bool has_slow(const FabricView& view) {
  for (const RackView& rack : view.racks()) {
    double fastest = 0;
    for (int m : rack.members) fastest = std::max(fastest, view.rate_kbps(m));
    for (int m : rack.members) {
      if (slowness(view.rate_kbps(m), fastest) > 1) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Ration> rations(const FabricView& view, const FamilyOptions& options) {
  std::vector<Ration> all;
  const int most_slow = has_slow(view) ? kMostSlow : 1;
  for (int slow = 1; slow <= most_slow; ++slow) {
    all.push_back({Crossing::kNone, 1, slow});
    if (view.racks().size() < 2) continue;
    for (const Crossing crossing : {Crossing::kHalf, Crossing::kAll, Crossing::kGuests}) {
      for (const int every : {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32}) {
        if (std::lcm(every, slow) > options.max_lanes) continue;
        all.push_back({crossing, every, slow});
      }
    }
  }
  return all;
}

Cycle rationed_pairs(const FabricView& view, const Ration& ration, const FamilyOptions& options) {
  Rationing rationing(view, ration, options.seed);
  Cycle cycle;
  cycle.name = name_of(ration);
  const auto turn = static_cast<std::size_t>(rationing.turn());
  // Slow nodes of several rates have turns of their own.
  if (turn > static_cast<std::size_t>(options.max_lanes)) return cycle;
  const std::size_t wanted =
      std::clamp(rationing.rounds(), kWantedSteps / 2, std::max(turn, kMaxScheduleSteps - turn));
  const std::size_t steps = (wanted + turn - 1) / turn * turn;
  for (std::size_t t = 0; t < steps; ++t) cycle.steps.push_back(rationing.step(t));
  // More lanes than a turn, so that who is in a group of three, or of many with a slow node, evens
  // out.
  const std::size_t most = std::min(static_cast<std::size_t>(options.max_lanes), kWantedLanes);
  cycle.lanes = static_cast<int>(turn * std::max<std::size_t>(1, most / turn));
  return cycle;
}

}  // namespace riffle
