#include "topology/probe/survey.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "topology/probe/nodes_alone.h"

namespace riffle::probe {
namespace {

constexpr int kFewNodes = 12;  // all pairs twice if anything was held back
constexpr int kCutRounds = 3;
constexpr int kWithinRounds = 2;
constexpr int kMostHubs = 3;
constexpr int kHubRounds = 2;
constexpr double kAsFast = 0.85;  // of the fastest uplink
constexpr int kMostDoubts = 5;
constexpr int kDoubtRounds = 3;
constexpr double kSure = 0.969;  // of racks, nearly as sure as ever: no pair needs a second look
constexpr double kManyHeldBack = 0.02;  // share of flows that makes a second look worth it
// Racks are far from each other, as sites are, if latency tells so: by a factor and by a time.
// Less is what queues in a switch do.
constexpr std::int64_t kFarTimes = 3;
constexpr std::int64_t kFarUs = 500;

int log2_of(int nodes) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(nodes - 1)));
}

// Of the pairs that `counts`.
template <class Filter>
std::int64_t median_latency_us(const std::vector<Observed>& all, Filter counts) {
  std::vector<std::int64_t> rtt;
  for (const Observed& o : all) {
    for (std::size_t i = 0; i < o.samples.size(); ++i) {
      if (o.samples[i].rtt_us > 0 && counts(o.round.flows[i])) rtt.push_back(o.samples[i].rtt_us);
    }
  }
  if (rtt.empty()) return 0;
  const auto middle = rtt.begin() + static_cast<std::ptrdiff_t>(rtt.size() / 2);
  std::nth_element(rtt.begin(), middle, rtt.end());
  return std::max<std::int64_t>(1, *middle / 2);
}

}  // namespace

Survey::Survey(int nodes, std::uint64_t seed, KnownRacks known)
    : nodes_(nodes), random_(seed), known_(std::move(known)) {
  plan_pairs();
}

void Survey::plan_pairs() {
  if (nodes_ < 2) return;
  if (nodes_ <= kDenseNodes) {
    // So few pairs of two or three nodes that each is measured three times.
    for (int again = 0; again < (nodes_ <= 3 ? 3 : 1); ++again) {
      for (Round& r : all_pairs(nodes_, random_)) queue_.push_back(std::move(r));
    }
    return;
  }
  const int steps = log2_of(nodes_);
  for (int i = 0; i < 4 * steps; ++i) queue_.push_back(random_pairs(nodes_, random_));
  for (int i = 0; i < steps; ++i) queue_.push_back(neighbours(nodes_, 1 << i, random_));
}

std::optional<Round> Survey::next(int rounds_left) {
  if (must_begin_fans(rounds_left)) {
    queue_.clear();
    stage_ = Stage::kFans;
    plan_fans();
  }
  while (queue_.empty() && stage_ != Stage::kOver) advance();
  if (queue_.empty()) return std::nullopt;
  Round round = std::move(queue_.front());
  queue_.pop_front();
  return round;
}

void Survey::add(Observed observed) {
  all_.push_back(std::move(observed));
  findings_are_current_ = false;
}

void Survey::advance() {
  switch (stage_) {
    case Stage::kPairs:
      stage_ = Stage::kAgain;
      if (nodes_ > 3 && nodes_ <= kFewNodes && anything_held_back() && !are_racks_sure()) {
        for (Round& r : all_pairs(nodes_, random_)) queue_.push_back(std::move(r));
      }
      return;
    case Stage::kAgain:
      stage_ = Stage::kRacks;
      return plan_racks();
    case Stage::kRacks:
      stage_ = Stage::kOtherRacks;
      return plan_racks();
    case Stage::kOtherRacks:
      stage_ = Stage::kHubs;
      return plan_hubs();
    case Stage::kHubs:
      stage_ = Stage::kFans;
      return plan_fans();
    case Stage::kFans:
      stage_ = Stage::kWideFans;
      return plan_wide_fans();
    case Stage::kWideFans:
    case Stage::kDoubts:
      stage_ = Stage::kDoubts;
      plan_doubts();
      if (queue_.empty()) stage_ = Stage::kOver;
      return;
    case Stage::kOver:
      stage_ = Stage::kOver;
      return;
  }
}

bool Survey::anything_held_back() const {
  return RackModel(nodes_, estimate_node_rates(nodes_, all_), all_).held_back() >= kManyHeldBack;
}

bool Survey::are_racks_sure() {
  const std::vector<double>& sure = findings().racks.confidence;
  return !sure.empty() && *std::min_element(sure.begin(), sure.end()) >= kSure;
}

// A suspicion is put to the test: if all nodes of a rack send to others at once, its uplink is
// full, if they send to each other, it is not used at all. What comes of it may be another
// suspicion. A hint is put to the test also where nothing was held back: pairs at random seldom
// leave a rack all at once.
void Survey::plan_racks() {
  if (nodes_ < 4) return;
  const bool is_held_back = anything_held_back();
  std::vector<int> racks;
  if (is_held_back) racks = findings().racks.suspected;
  if (racks.empty()) {
    if (const std::vector<RackHint> all = hints(); !all.empty()) racks = all.front().rack_of;
  }
  if (racks.empty()) {
    if (!is_held_back) return;
    for (int i = 0; i < kCutRounds; ++i) queue_.push_back(random_pairs(nodes_, random_));
    return;
  }
  if (racks == tested_racks_) return;
  tested_racks_ = racks;
  for (int i = 0; i < kCutRounds; ++i) queue_.push_back(across_racks(racks, random_));
  for (int i = 0; i < kWithinRounds; ++i) queue_.push_back(within_racks(racks, random_));
}

// Where each node has one flow, what a rack exchanges is never more than its partners can: the
// fastest uplink looks like the second.
void Survey::plan_hubs() {
  const Racks& racks = findings().racks;
  if (racks.count < 3) return;
  std::vector<int> hubs(static_cast<std::size_t>(racks.count));
  std::iota(hubs.begin(), hubs.end(), 0);
  const auto rate = [&](int r) {
    const Uplink& u = racks.uplinks[static_cast<std::size_t>(r)];
    return std::max(u.up_kbps, u.down_kbps);
  };
  std::stable_sort(hubs.begin(), hubs.end(), [&](int a, int b) { return rate(a) > rate(b); });
  const double least = kAsFast * rate(hubs.front());
  std::erase_if(hubs, [&](int r) { return rate(r) == 0 || rate(r) < least; });
  if (hubs.size() > kMostHubs) hubs.resize(kMostHubs);
  for (int again = 0; again < kHubRounds; ++again) {
    for (const int hub : hubs) queue_.push_back(around_rack(racks.rack_of, hub, random_));
  }
}

// Flows that come and go hide racks from some rounds and feign them in others; over a longer time
// they do not. A suspicion that was not put to the test yet, is, however sure it looks.
void Survey::plan_doubts() {
  if (nodes_ < 4 || nodes_ > kDenseNodes || doubts_ == kMostDoubts) return;
  if (!known_.rack_of.empty() || !anything_held_back()) return;
  ++doubts_;
  plan_racks();
  if (!queue_.empty() || are_racks_sure()) return;
  for (int i = 0; i < kDoubtRounds; ++i) queue_.push_back(random_pairs(nodes_, random_));
}

void Survey::measure_latency() {
  Findings& f = findings_;
  f.latency_us = median_latency_us(all_, [](const Flow&) { return true; });
  f.rack_latency_us = 0;
  if (f.racks.count < 2) return;
  const auto in_one_rack = [&](const Flow& flow) {
    return f.racks.rack_of[static_cast<std::size_t>(flow.from)] ==
           f.racks.rack_of[static_cast<std::size_t>(flow.to)];
  };
  const std::int64_t near_us = median_latency_us(all_, in_one_rack);
  const std::int64_t far_us =
      median_latency_us(all_, [&](const Flow& flow) { return !in_one_rack(flow); });
  if (far_us == 0) return;
  f.latency_us = far_us;
  if (near_us > 0 && near_us * kFarTimes <= far_us && far_us - near_us >= kFarUs) {
    f.rack_latency_us = near_us;
  }
}

// What was known before, and what the rounds showed of hops.
std::vector<RackHint> Survey::hints() const {
  if (!known_.rack_of.empty()) return {};
  std::vector<RackHint> all = known_.hints;
  if (auto hops = hint_of_hops(nodes_, all_)) all.push_back(std::move(*hops));
  return all;
}

const Findings& Survey::findings() {
  if (findings_are_current_) return findings_;
  findings_are_current_ = true;
  Findings& f = findings_;
  // What fans show of nodes is more than any pair can reach. But where all pairs of a node cross
  // uplinks, only its fan shows that it is not slow.
  std::vector<Observed> pairs = all_;
  std::erase_if(pairs, [this](const Observed& o) { return !is_pairs(o.round, nodes_); });
  NodeRates reached = estimate_node_rates(nodes_, pairs);
  raise_to_fans(all_, fastest_of(reached), &reached);
  const auto racks_by = [&](const NodeRates& rates) {
    const RackModel model(nodes_, rates, pairs);
    return known_.rack_of.empty() ? find_racks(model, all_, hints())
                                  : known_racks(model, known_.rack_of);
  };
  f.racks = racks_by(reached);
  const NodeLimits alone = limits_of_nodes_alone(f.racks);
  if (alone.lower(&reached)) f.racks = racks_by(reached);
  f.rates = estimate_node_rates(nodes_, all_, f.racks.rack_of);
  (void)alone.lower(&f.rates);
  mark_own_limits(all_, f.racks.rack_of, &f.rates);
  measure_latency();
  f.rounds = static_cast<int>(all_.size());
  return f;
}

}  // namespace riffle::probe
