// Survey: rounds in which several partners meet a node at once, for nodes that are faster than any.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "topology/probe/survey.h"

namespace riffle::probe {
namespace {

constexpr int kGroup = 4;  // nodes of a small fan
constexpr int kMostWideFans = 3;
constexpr int kWideRounds = 2;                             // of each
constexpr std::size_t kLeastSpokes = 3, kMostSpokes = 16;  // of a wide fan
constexpr double kSaturated = 0.85;                        // of what all partners together can do
constexpr double kSurprise = 1.15;                         // times the rate known so far
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

}  // namespace

// Racks come first; but where they are sure, the time goes to what nodes can do.
bool Survey::must_begin_fans(int rounds_left) {
  if (stage_ <= Stage::kPairs || stage_ >= Stage::kFans) return false;
  const int groups = std::max(1, nodes_ / kGroup), fans = (nodes_ + groups - 1) / groups;
  return rounds_left <= fans || (rounds_left <= fans + kWideRounds && are_racks_sure());
}

void Survey::plan_fans() {
  fans_begin_ = all_.size();
  if (nodes_ < 3) return;
  const Findings& known = findings();
  const bool is_held_back = anything_held_back();  // whose limit it was is not sure then
  std::vector<Round> rounds = fans(known.racks.rack_of, kGroup, random_);
  // The time may be up before the last one: those of hubs that may be far faster come first.
  const auto unknown = [&](const Round& r) {
    return std::ranges::count_if(r.flows, [&](const Flow& f) {
      return !known.rates.out[static_cast<std::size_t>(f.from)].is_own;
    });
  };
  std::ranges::stable_sort(rounds, std::greater<>(), unknown);
  for (const Round& all : rounds) {
    Round wanted;  // every second flow leaves its hub, the next one comes back
    for (std::size_t f = 0; f + 1 < all.flows.size(); f += 2) {
      const auto hub = static_cast<std::size_t>(all.flows[f].from);
      if (is_held_back || !known.rates.out[hub].is_own) wanted.flows.push_back(all.flows[f]);
      if (is_held_back || !known.rates.in[hub].is_own) wanted.flows.push_back(all.flows[f + 1]);
    }
    if (!wanted.flows.empty()) queue_.push_back(std::move(wanted));
  }
}

// Of the other racks only as many as fill the uplinks, the fastest first: more of them take from
// each other, and from the hub's own rack, and none is steady. Fewer than three show too little.
std::vector<int> Survey::spokes_of(int hub) {
  const Findings& known = findings();
  const std::vector<int>& racks = known.racks.rack_of;
  const auto rack = [&](int n) {
    return static_cast<std::size_t>(racks[static_cast<std::size_t>(n)]);
  };
  const auto rate = [&](int n) { return known.rates.in[static_cast<std::size_t>(n)].kbps; };
  std::vector<double> room(static_cast<std::size_t>(known.racks.count), kNoLimit);  // both ways
  for (std::size_t r = 0; r < known.racks.uplinks.size(); ++r) {
    for (const double kbps : {known.racks.uplinks[r].up_kbps, known.racks.uplinks[r].down_kbps}) {
      if (kbps > 0) room[r] = std::min(room[r], kbps);
    }
  }
  std::vector<int> spokes, others;
  for (int n = 0; n < nodes_; ++n) {
    if (n != hub) (rack(n) == rack(hub) ? spokes : others).push_back(n);
  }
  shuffle(&spokes, random_);
  shuffle(&others, random_);
  std::ranges::stable_sort(others, std::greater<>(), rate);
  for (const int n : others) {
    const bool is_full = room[rack(n)] <= 0 || room[rack(hub)] <= 0;
    if (is_full && spokes.size() >= kLeastSpokes) continue;
    spokes.push_back(n);
    room[rack(n)] -= rate(n);
    room[rack(hub)] -= rate(n);
  }
  if (spokes.size() > kMostSpokes) spokes.resize(kMostSpokes);
  return spokes;
}

// Hubs that kept all their partners busy may have more to give, and hubs that did far better than
// ever before need a second opinion. Of the fastest too low a rate costs most.
void Survey::plan_wide_fans() {
  const Findings& known = findings();
  const std::vector<int>& racks = known.racks.rack_of;
  std::vector<std::pair<double, int>> hubs;  // what each sent, and which it is
  for (std::size_t o = fans_begin_; o < all_.size(); ++o) {
    struct Sum {
      double sent = 0, received = 0, partners = 0;
      int flows = 0;
    };
    std::vector<Sum> sums(static_cast<std::size_t>(nodes_));
    for (std::size_t f = 0; f < all_[o].round.flows.size(); ++f) {
      const auto from = static_cast<std::size_t>(all_[o].round.flows[f].from);
      const auto to = static_cast<std::size_t>(all_[o].round.flows[f].to);
      const auto seen = static_cast<double>(all_[o].samples[f].together_kbps);
      ++sums[from].flows;
      sums[from].sent += seen;
      sums[to].received += seen;
      // What crosses an uplink is its limit, not the partner's.
      if (racks[from] == racks[to]) sums[from].partners += known.rates.in[to].kbps;
    }
    for (int n = 0; n < nodes_; ++n) {
      const auto i = static_cast<std::size_t>(n);
      const Sum& sum = sums[i];
      if (sum.flows > 1 && (sum.sent >= kSaturated * sum.partners ||
                            sum.sent >= kSurprise * known.rates.out[i].kbps ||
                            sum.received >= kSurprise * known.rates.in[i].kbps)) {
        hubs.emplace_back(sum.sent, n);
      }
    }
  }
  std::ranges::stable_sort(hubs, std::greater<>(), [](const auto& h) { return h.first; });
  if (static_cast<int>(hubs.size()) > kMostWideFans) hubs.resize(kMostWideFans);
  for (const auto& [sent, hub] : hubs) {
    const Round wide = fan(hub, spokes_of(hub));
    for (int again = 0; again < kWideRounds; ++again) queue_.push_back(wide);
  }
}

}  // namespace riffle::probe
