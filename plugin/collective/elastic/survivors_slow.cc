// Survivors, part 3: nodes that are too slow (RIFFLE_MIN_RATE).
#include <algorithm>
#include <utility>

#include "plugin/collective/elastic/survivors.h"
#include "plugin/collective/elastic/survivors_term.h"
#include "plugin/config/log.h"
#include "topology/base/printed.h"

namespace riffle {

// Whom to send away, all at once or nobody: those who are fast enough must be a quorum of all nodes
// of connect, which is more than one of the term's. Else slow nodes that are noticed at different
// times would go one after the other, each time with a quorum of the rest. This node, which
// decides, stays; it counts as slow if it is.
void Survivors::too_slow(const std::vector<SlowNode>& places) {
  if (has_failed_ || slow_timer_ || !regroup_.is_running()) return;
  std::vector<int> all(static_cast<std::size_t>(mesh_->size()));
  for (int node = 0; node < mesh_->size(); ++node) all[static_cast<std::size_t>(node)] = node;
  std::vector<int> fast = regroup_.membership().nodes;
  std::vector<std::pair<int, std::string>> away;
  std::string who;
  const auto mbps = [](std::int64_t kbps) { return static_cast<double>(kbps) / 1000; };
  for (const SlowNode& s : places) {
    const int node = term_->node(s.node);
    std::erase(fast, node);
    who += (who.empty() ? "" : ", ") + hooks_.name_of(node);
    if (node == mesh_->rank() || s.intervals < SlowNodes::kIntervals) continue;
    away.emplace_back(node, printed("it carried %.4g Mbit/s, less than RIFFLE_MIN_RATE=%.4g, in %d "
                                    "replanning intervals in a row",
                                    mbps(s.kbps), mbps(options_.replan.least_kbps), s.intervals));
  }
  if (!holds_quorum(all, fast)) {
    if (std::exchange(said_too_many_, true)) return;
    return log_warn("slower than RIFFLE_MIN_RATE: " + who + "; nobody is sent away, for only " +
                    std::to_string(fast.size()) + " of " + std::to_string(all.size()) +
                    " nodes would be left, which is no quorum");
  }
  if (places.front().node == 0 && !std::exchange(said_it_stays_, true)) {
    log_warn(hooks_.name_of(mesh_->rank()) +
             " is slower than RIFFLE_MIN_RATE; it stays, for it is the one that plans");
  }
  if (away.empty()) return;
  // Later: the replanning intervals that say so end with the term.
  slow_timer_ = timers_->call_at(mesh_->now_ns(), [this, away] {
    slow_timer_.reset();
    if (!has_failed_) regroup_.expel(away);
  });
}

void Survivors::forget_slow() {
  if (slow_timer_) timers_->cancel(*slow_timer_);
  slow_timer_.reset();
}

}  // namespace riffle
