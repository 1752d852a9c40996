#include "topology/plan/rank_order.h"

#include <algorithm>
#include <array>
#include <compare>
#include <numeric>
#include <random>
#include <string>
#include <tuple>

#include "topology/plan/shares.h"

// Without groups the best order is simple: rack after rack. A ring of nodes of several racks leaves
// each of them at least once; this one leaves each exactly once, so it loads all links of racks as
// little as any order can, at the same time, and the nodes' links are as busy in any. Nodes within
// a rack, and the racks themselves, may come in any order.
//
// Groups cut the order at multiples of their size, wherever racks end. Which racks should share a
// group is a matter of packing their remainders, which is hard in general; but any order rack after
// rack is within a factor of two: it leaves a rack once, and the rings of at most two groups that
// it shares with others leave it once each. So: racks are put one after the other, such that they
// end where groups do; few nodes are then tried in all orders, and many improved by local search,
// which may also split a rack whose uplink is fast.
namespace riffle {
namespace {

// Of a buffer, what a node of a ring passes on in either phase.
double passed_on(int members) { return 1 - 1.0 / members; }

double slower_kbps(const RackView& rack) { return std::min(rack.up_kbps, rack.down_kbps); }

// What limits such rings in any order: the slowest node, or a rack that has to share a ring.
double limiting_kbps(const FabricView& view, int members) {
  double slowest = view.rate_kbps(0);
  for (int n = 1; n < view.size(); ++n) slowest = std::min(slowest, view.rate_kbps(n));
  for (const RackView& rack : view.racks()) {
    if (rack.members.size() % members != 0) slowest = std::min(slowest, slower_kbps(rack));
  }
  return slowest;
}

// Which rack is where: an index in FabricView::racks() for every rank. Nodes of a rack are alike.
using RackByRank = std::vector<int>;

RackByRank racks_of(const FabricView& view, std::span<const int> order) {
  RackByRank racks;
  for (const int node : order) racks.push_back(view.rack_of(node));
  return racks;
}

// Calls f(rack) for every edge that leaves it.
template <class F>
void for_each_crossing(const RackByRank& racks, int members, const F& f) {
  const int nodes = static_cast<int>(racks.size());
  for (int first = 0; first < nodes; first += members) {
    int before = racks[first + members - 1];
    for (int rank = first; rank < first + members; ++rank) {
      if (racks[rank] != before) f(before);
      before = racks[rank];
    }
  }
}

// Rings of one size, and what they take: a whole buffer over a link of 1 kbit/s counts as 1.
class RingLoads {
 public:
  RingLoads(const FabricView& view, int members)
      : members_(members), least_(passed_on(members) / limiting_kbps(view, members)) {
    for (const RackView& rack : view.racks()) {
      edge_.push_back(passed_on(members) / slower_kbps(rack));
    }
  }

  double edge(int rack) const { return edge_[rack]; }
  double least() const { return least_; }  // of the busiest link, in any order

  // Of the busiest link, and added to `sum` of all racks' links.
  double busiest(const RackByRank& racks, double* sum) {
    loads_.assign(edge_.size(), 0);
    for_each_crossing(racks, members_, [&](int rack) { loads_[rack] += edge_[rack]; });
    *sum = std::accumulate(loads_.begin(), loads_.end(), *sum);
    return std::max(least_, *std::ranges::max_element(loads_));
  }

 private:
  int members_;
  double least_;
  std::vector<double> edge_, loads_;
};

class RankOrderSearch {
 public:
  RankOrderSearch(const FabricView& view, int group)
      : group_(group),
        nodes_(view.size()),
        all_rings_(view, nodes_),
        group_rings_(view, group),
        best_(rack_after_rack(view)),
        score_(score(best_)) {}

  const RackByRank& find() {
    if (is_best()) return best_;
    if (orders() <= kMostExhaustive) {
      try_all();
    } else {
      exchange_blocks();
    }
    return best_;
  }
  bool is_better_than(const RackByRank& racks) { return score_ < score(racks); }

 private:
  static constexpr double kMostExhaustive = 50'000;
  static constexpr int kTries = 60'000;               // in vain, one after the other
  static constexpr std::int64_t kMostWork = 1 << 28;  // ranks looked at in all tries

  struct Score {
    double slower = 0, both = 0, all_links = 0;
    auto operator<=>(const Score&) const = default;
  };

  Score score(const RackByRank& racks) {
    double sum = 0;
    const double all = all_rings_.busiest(racks, &sum);
    const double groups = group_rings_.busiest(racks, &sum);
    return {std::max(all, groups), all + groups, sum};
  }

  // As fast as any order can be.
  bool is_best() const { return score_.both <= all_rings_.least() + group_rings_.least(); }

  // Next comes the rack that shares the fewest groups with others; of these, one that ends where a
  // group does; small ones last, as they fit in anywhere; and slow ones before they have to share
  // two groups, fast ones where one has to.
  RackByRank rack_after_rack(const FabricView& view) const {
    RackByRank racks;
    std::vector<int> left(view.racks().size());
    std::iota(left.begin(), left.end(), 0);
    while (!left.empty()) {
      const int begin = static_cast<int>(racks.size()) % group_;
      const auto size = [&](int r) { return static_cast<int>(view.racks()[r].members.size()); };
      const auto rating = [&](int r) {
        const int end = begin + size(r);
        const bool is_open = end % group_ != 0;
        const int shared = (begin > 0 ? 1 : 0) + (is_open && (begin == 0 || end > group_) ? 1 : 0);
        const double edge = group_rings_.edge(r);
        return std::tuple(shared, is_open, size(r) < group_, shared == 2 ? edge : -edge);
      };
      const auto next = std::ranges::min_element(left, {}, rating);
      racks.insert(racks.end(), size(*next), *next);
      left.erase(next);
    }
    return racks;
  }

  // How many there are, nodes of one rack taken for the same; counted rack after rack.
  double orders() const {
    double product = 1;
    int in_rack = 0;
    for (int n = 0; n < nodes_; ++n) {
      in_rack = n > 0 && best_[n] == best_[n - 1] ? in_rack + 1 : 1;
      product *= static_cast<double>(n + 1) / in_rack;
    }
    return product;
  }

  void try_all() {
    RackByRank racks = best_;
    std::ranges::sort(racks);
    do {
      if (const Score s = score(racks); s < score_) {
        score_ = s;
        best_ = racks;
      }
    } while (std::ranges::next_permutation(racks).found);
  }

  // Two neighbouring blocks change places wherever that is no worse. Blocks mostly end where racks
  // do.
  void exchange_blocks() {
    std::mt19937_64 random(1);
    const auto cut = [&] {
      int at = static_cast<int>(random() % (static_cast<std::uint64_t>(nodes_) + 1));
      if (random() % 4 == 0) return at;
      while (at > 0 && at < nodes_ && best_[at] == best_[at - 1]) ++at;
      return at;
    };
    RackByRank racks;
    std::int64_t work = kMostWork;
    for (int tries = kTries; tries > 0 && work > 0 && !is_best(); --tries, work -= nodes_) {
      std::array<int, 3> cuts = {cut(), cut(), cut()};
      std::ranges::sort(cuts);
      racks = best_;
      std::rotate(racks.begin() + cuts[0], racks.begin() + cuts[1], racks.begin() + cuts[2]);
      const Score s = score(racks);
      if (s > score_) continue;
      if (s < score_) tries = kTries;
      score_ = s;
      best_.swap(racks);
    }
  }

  int group_, nodes_;
  RingLoads all_rings_, group_rings_;
  RackByRank best_;
  Score score_;
};

std::string divisors(int number) {
  std::string text;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) text += (d > 1 ? ", " : "") + std::to_string(d);
  }
  return text;
}

}  // namespace

RingsTime rings_time(const FabricView& view, std::span<const int> order, int members,
                     std::uint64_t bytes) {
  if (members < 2) return {};
  const std::vector<Share> cuts =
      cuts_of(even_weights(static_cast<std::size_t>(members)), 0, kShareUnits);
  Level rings;
  for (std::size_t first = 0; first < order.size(); first += members) {
    const auto ring = order.subspan(first, members);
    rings.groups.push_back({Pattern::kRing, {ring.begin(), ring.end()}, cuts});
  }
  Loads loads = loads_of(view, rings, Phase::kReduceScatter);
  loads += loads_of(view, rings, Phase::kAllGather);
  RingsTime time{slowest(view, loads, static_cast<double>(bytes), 0), 0};
  for_each_crossing(racks_of(view, order), members, [&](int /*rack*/) { ++time.crossings; });
  return time;
}

double rings_bound_us(const FabricView& view, int members, std::uint64_t bytes) {
  return 2 * passed_on(members) * static_cast<double>(bytes) * 8000 / limiting_kbps(view, members);
}

Result<std::vector<int>> best_rank_order(const FabricView& view, int group) {
  const int nodes = view.size();
  if (group < 1 || nodes % group != 0) {
    return invalid_argument("groups of " + std::to_string(group) + " do not divide " +
                            std::to_string(nodes) + " nodes: accepted are " + divisors(nodes));
  }
  std::vector<int> order(nodes);
  std::iota(order.begin(), order.end(), 0);
  RankOrderSearch search(view, group == nodes ? 1 : group);
  const RackByRank racks = search.find();
  if (!search.is_better_than(racks_of(view, order))) return order;
  std::vector<std::size_t> taken(view.racks().size());
  for (int rank = 0; rank < nodes; ++rank) {
    order[rank] = view.racks()[racks[rank]].members[taken[racks[rank]]++];
  }
  return order;
}

}  // namespace riffle
