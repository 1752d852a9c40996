#include "topology/probe/live_rates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "topology/base/check.h"

namespace riffle::probe {
namespace {

// A link "was the limit" in a replanning interval if it was for this long and for this part of the
// active time.
constexpr std::int64_t kLimitMs = 100;
constexpr double kLimitShare = 0.25;
constexpr double kOfPeak = 0.7;
// ... for this part, if it never carried more: an uplink that a plan keeps full all the time holds
// frames up only now and then.
constexpr double kSteadyShare = 0.05;
// Beyond doubt: one replanning interval is enough.
constexpr std::int64_t kClearMs = 500;
constexpr double kClearShare = 0.5;
// Two measurements that agree.
constexpr double kAgree = 0.15;
// Rates that are rough say only that others were wrong by more than this.
constexpr double kRough = 2;
// What a link carried counts only if the replanning interval was long enough for the quantile to
// mean something.
constexpr std::int64_t kPeakMs = 50;
// Steps of recovery per replanning interval: small without a sign, large while the link carries
// about all that it is believed to and still is not the limit.
constexpr double kCreep = 1.1;
constexpr double kLeap = 2.0;
constexpr double kAboutAll = 0.9;
// ... if it has carried more than it had as the limit, by this: more than bursts explain. Of others
// only a file or a probe says that they can.
constexpr double kProven = 1.5;
constexpr double kBurst = 1.25;
// A node that sends less than this part of its rate to other racks has no part in the collective's
// way there, only in the messages of connect and replanning intervals.
constexpr double kMessages = 0.02;

template <typename Link>
std::string named(const std::string& kind, std::size_t place, const Link& link) {
  const std::string plain = std::to_string(link.number < 0 ? place : std::size_t(link.number));
  const bool says_more = !link.name.empty() && link.name != plain && link.name != kind + plain;
  return kind + " " + plain + (says_more ? " (" + link.name + ")" : "");
}

}  // namespace

LiveRates::LiveRates(Fabric base, bool is_nominal)
    : base_(std::move(base)),
      is_nominal_(is_nominal),
      out_(base_.nodes.size()),
      in_(base_.nodes.size()),
      up_(base_.racks.size()) {}

bool LiveRates::was_limit(const PassiveRate& rate, std::int64_t active_ms) {
  const double share = static_cast<double>(rate.limit_ms) / static_cast<double>(active_ms + 1);
  const double of_peak =
      static_cast<double>(rate.limit_kbps) / static_cast<double>(rate.peak_kbps + 1);
  const double least_share = of_peak >= kAboutAll ? kSteadyShare : kLimitShare;
  if (rate.limit_kbps <= 0 || rate.limit_ms < kLimitMs || share < least_share) return false;
  // A link that carried far more in the same replanning interval was not the limit, unless for most
  // of the time.
  return share >= kClearShare || of_peak >= kOfPeak;
}

void LiveRates::update(const std::vector<PassiveReport>& reports, bool is_too_low) {
  RIFFLE_CHECK(reports.size() == base_.nodes.size(), "one report per node");
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const PassiveReport& r = reports[i];
    // Nominal rates are further off than rough ones.
    const bool is_rough = r.is_rough && !is_nominal_;
    learn(&out_[i], r.out, r.active_ms, base_.nodes[i].out_kbps, is_rough);
    learn(&in_[i], r.in, r.active_ms, base_.nodes[i].in_kbps, is_rough);
  }
  if (is_nominal_) {
    double measured = 0, carried = 0;
    for (const auto* side : {&out_, &in_}) {
      for (const Estimate& e : *side) {
        measured = std::max(measured, e.measured);
        carried = std::max(carried, e.carried);
      }
    }
    // A peak a little above what was measured is a burst; one far above it is another link.
    const double best = carried > kBurst * measured ? carried : measured;
    if (best > 0) ceiling_ = best;
  }
  for (std::size_t k = 0; k < up_.size(); ++k) {
    const std::int64_t up_kbps = base_.racks[k].up_kbps;
    if (up_kbps == 0) continue;  // no limit
    std::int64_t active_ms = 0;
    bool is_rough = false;
    const PassiveRate rate = uplink(static_cast<int>(k), reports, &active_ms, &is_rough);
    learn(&up_[k], rate, active_ms, up_kbps, is_rough && !is_nominal_);
    recover(&up_[k], rate, active_ms, up_kbps, is_too_low);
  }
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const PassiveReport& r = reports[i];
    recover(&out_[i], r.out, r.active_ms, base_.nodes[i].out_kbps, is_too_low);
    recover(&in_[i], r.in, r.active_ms, base_.nodes[i].in_kbps, is_too_low);
  }
}

// What the nodes of a rack say of their uplink, as if it were one node's link. Some plans leave the
// way out to few of them, and these may then have no near peer to compare with: what goes out as
// fast as the node can send anyway was not held up by the uplink.
PassiveRate LiveRates::uplink(int rack, const std::vector<PassiveReport>& reports,
                              std::int64_t* active_ms, bool* is_rough) const {
  PassiveRate sum;
  int members = 0, limited = 0;
  std::int64_t limit_kbps = 0, limit_ms = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (base_.nodes[i].rack != rack) continue;
    const PassiveReport& r = reports[i];
    const double own_kbps = out_[i].factor * static_cast<double>(base_.nodes[i].out_kbps);
    if (static_cast<double>(r.far.peak_kbps) < kMessages * own_kbps) continue;
    const bool was = was_limit(r.far, r.active_ms) &&
                     static_cast<double>(r.far.limit_kbps) < kAboutAll * own_kbps;
    ++members;
    limited += was;
    limit_kbps += was ? r.far.limit_kbps : r.far.peak_kbps;
    limit_ms += was ? r.far.limit_ms : 0;
    sum.peak_kbps += r.far.peak_kbps;
    *active_ms = std::max(*active_ms, r.active_ms);
    *is_rough |= r.is_rough;
  }
  if (2 * limited > members) {
    sum.limit_kbps = limit_kbps;
    sum.limit_ms = limit_ms / limited;
  }
  return sum;
}

void LiveRates::learn(Estimate* e, const PassiveRate& rate, std::int64_t active_ms,
                      std::int64_t base_kbps, bool is_rough) {
  const double base = static_cast<double>(base_kbps);
  if (active_ms >= kPeakMs) {
    e->carried = std::max(e->carried, static_cast<double>(rate.peak_kbps) / base);
  }
  if (!was_limit(rate, active_ms)) {
    e->pending = 0;
    return;
  }
  const double measured = static_cast<double>(rate.limit_kbps) / base;
  if (is_rough && measured < kRough * e->factor && e->factor < kRough * measured) {
    e->pending = 0;
    return;
  }
  e->measured = std::max(e->measured, measured);
  const bool is_clear =
      rate.limit_ms >= kClearMs &&
      static_cast<double>(rate.limit_ms) >= kClearShare * static_cast<double>(active_ms);
  if (std::fabs(measured - e->factor) <= kSameRate * e->factor) {
    e->factor += 0.3 * (measured - e->factor);
    e->pending = 0;
  } else if (is_clear) {
    e->factor = measured;
    e->pending = 0;
  } else if (e->pending > 0 && std::fabs(measured - e->pending) <= kAgree * e->pending) {
    e->factor = (measured + e->pending) / 2;
    e->pending = 0;
  } else {
    e->pending = measured;
  }
  if (e->pending == 0) e->limit = e->factor;
}

void LiveRates::recover(Estimate* e, const PassiveRate& rate, std::int64_t active_ms,
                        std::int64_t base_kbps, bool is_too_low) const {
  if (active_ms < kPeakMs || was_limit(rate, active_ms)) return;
  // A base that was only nominal never holds for a link that was not seen to reach it.
  const double most = std::max(ceiling_, e->measured);
  if (e->factor >= most) {
    if (is_nominal_) e->factor = most;
    return;
  }
  const double carried = static_cast<double>(rate.peak_kbps) / static_cast<double>(base_kbps);
  const bool is_full = carried > kAboutAll * e->factor && e->carried > kProven * e->limit;
  const double step = is_too_low || is_full ? kLeap : kCreep;
  e->factor = std::min(most, std::max(carried, e->factor * step));
}

Fabric LiveRates::fabric() const {
  struct Entry {
    double factor;
    std::int64_t* kbps;
    std::int64_t base_kbps;
  };
  Fabric live = base_;
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < live.nodes.size(); ++i) {
    NodeLink& n = live.nodes[i];
    entries.push_back({out_[i].factor, &n.out_kbps, n.out_kbps});
    entries.push_back({in_[i].factor, &n.in_kbps, n.in_kbps});
  }
  for (std::size_t k = 0; k < live.racks.size(); ++k) {
    RackLink& rack = live.racks[k];
    if (rack.up_kbps > 0) entries.push_back({up_[k].factor, &rack.up_kbps, rack.up_kbps});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.factor > b.factor; });
  for (std::size_t begin = 0; begin < entries.size();) {
    std::size_t end = begin;
    while (end < entries.size() && entries[end].factor >= entries[begin].factor * (1 - kSameRate)) {
      ++end;
    }
    double factor = entries[begin + (end - begin) / 2].factor;
    // A link as fast as connect said is exactly so fast.
    if (!is_nominal_ && factor <= 1 + kSameRate && entries[begin].factor >= 1 - kSameRate) {
      factor = 1;
    }
    for (; begin < end; ++begin) {
      const double kbps = factor * static_cast<double>(entries[begin].base_kbps);
      *entries[begin].kbps = std::max<std::int64_t>(1, std::llround(kbps));
    }
  }
  return live;
}

std::string describe_change(const Fabric& from, const Fabric& to) {
  struct Change {
    double ratio;  // how many times faster or slower
    std::string text;
  };
  std::vector<Change> changes;
  const auto add = [&](const std::string& who, const char* verb, std::int64_t was,
                       std::int64_t is) {
    if (was <= 0 || is <= 0 || was == is) return;
    const double ratio =
        static_cast<double>(std::max(was, is)) / static_cast<double>(std::min(was, is));
    changes.push_back({ratio, who + " now " + verb + " " + std::to_string((is + 500) / 1000) +
                                  " Mbit/s, was " + std::to_string((was + 500) / 1000)});
  };
  for (std::size_t i = 0; i < from.nodes.size() && i < to.nodes.size(); ++i) {
    const NodeLink &a = from.nodes[i], &b = to.nodes[i];
    const std::string who = named("node", i, b);
    if (a.out_kbps == a.in_kbps && b.out_kbps == b.in_kbps) {
      add(who, "sends and receives", a.out_kbps, b.out_kbps);
    } else {
      add(who, "sends", a.out_kbps, b.out_kbps);
      add(who, "receives", a.in_kbps, b.in_kbps);
    }
  }
  for (std::size_t r = 0; r < from.racks.size() && r < to.racks.size(); ++r) {
    const RackLink &a = from.racks[r], &b = to.racks[r];
    const std::string who = named("rack", r, b);
    add(who, "sends", a.up_kbps, b.up_kbps);
    add(who, "receives", a.down_kbps, b.down_kbps);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.ratio > b.ratio; });
  constexpr std::size_t kMostTold = 2;
  std::string text;
  for (std::size_t i = 0; i < changes.size() && i < kMostTold; ++i) {
    text += (text.empty() ? "" : "; ") + changes[i].text;
  }
  if (changes.size() > kMostTold) {
    text += "; and " + std::to_string(changes.size() - kMostTold) + " more";
  }
  return text;
}

}  // namespace riffle::probe
