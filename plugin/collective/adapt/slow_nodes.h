// SlowNodes: which nodes have been slower than RIFFLE_MIN_RATE for so long that the others go on
// without them (docs/surviving-losses.md). Pure; node 0's, replanning interval by replanning
// interval. Rates in kbit/s.
//
// It takes more than for another plan: not only what is believed of a node's link has to be below,
// but its own traffic must have shown so in each of the replanning intervals.
//
// All of them are named at once, so that the node that decides knows how many are left: nodes that
// turn slow at the same time are not always noticed in the same replanning interval. A node that is
// known to be below, but not yet for long enough, is waited for, up to kIntervals more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "topology/fabric/fabric.h"
#include "topology/probe/passive.h"

namespace riffle {

class SlowNodes {
 public:
  static constexpr int kIntervals = 3;  // in a row
  // A link was the limit for so long, and for this part of the time with traffic: nodes that stand
  // behind a slow one in the order of a plan seem to be, too, but for less of it.
  static constexpr std::int64_t kLimitMs = 100;
  static constexpr double kLimitShare = 0.75;
  // ... and never carried much more.
  static constexpr double kOfPeak = 0.7;

  // `least_kbps` 0: no node is too slow.
  SlowNodes(std::int64_t least_kbps, int nodes)
      : least_kbps_(least_kbps), intervals_(static_cast<std::size_t>(nodes), 0) {}

  // The slower direction is what counts.
  static std::int64_t rate_of(const NodeLink& node) {
    return std::min(node.out_kbps, node.in_kbps);
  }

  // What is believed after one more replanning interval, and what it was learned from. Returns all
  // who are below, in ascending order, if it is time to send those away that were for kIntervals;
  // else none.
  std::vector<int> update(const Fabric& live, const std::vector<probe::PassiveReport>& reports) {
    std::vector<int> slow;
    if (least_kbps_ == 0) return slow;
    int longest = 0;
    bool is_any_new = false;
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      const Sign out = sign_of(reports[i].out, reports[i].active_ms);
      const Sign in = sign_of(reports[i].in, reports[i].active_ms);
      const bool is_slow = (live.nodes[i].out_kbps < least_kbps_ && out == Sign::kSlow) ||
                           (live.nodes[i].in_kbps < least_kbps_ && in == Sign::kSlow);
      const bool is_below = rate_of(live.nodes[i]) < least_kbps_;
      if (is_slow) {
        ++intervals_[i];
      } else if (!is_below || out == Sign::kHeldUp || in == Sign::kHeldUp) {
        intervals_[i] = 0;
      }
      longest = std::max(longest, intervals_[i]);
      is_any_new |= intervals_[i] > 0 && intervals_[i] < kIntervals;
      if (intervals_[i] > 0) slow.push_back(static_cast<int>(i));
    }
    const bool is_time = longest >= kIntervals && (!is_any_new || longest >= 2 * kIntervals);
    if (!is_time) slow.clear();
    return slow;
  }

  // Below, for how many replanning intervals in a row.
  int intervals_below(int node) const { return intervals_[static_cast<std::size_t>(node)]; }

 private:
  enum class Sign { kNone, kSlow, kHeldUp };
  Sign sign_of(const probe::PassiveRate& rate, std::int64_t active_ms) const {
    const bool was_limit =
        rate.limit_kbps > 0 && rate.limit_ms >= kLimitMs &&
        static_cast<double>(rate.limit_ms) >= kLimitShare * static_cast<double>(active_ms);
    if (!was_limit) return Sign::kNone;
    if (static_cast<double>(rate.limit_kbps) < kOfPeak * static_cast<double>(rate.peak_kbps)) {
      return Sign::kHeldUp;
    }
    return rate.limit_kbps < least_kbps_ ? Sign::kSlow : Sign::kNone;
  }

  const std::int64_t least_kbps_;
  std::vector<int> intervals_;
};

}  // namespace riffle
