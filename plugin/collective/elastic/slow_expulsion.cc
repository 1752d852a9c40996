#include "plugin/collective/elastic/slow_expulsion.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/transport/base/mesh.h"
#include "topology/base/printed.h"

namespace riffle {

SlowExpulsion::SlowExpulsion(Mesh* mesh, TimerService* timers, std::int64_t least_kbps,
                             std::function<std::string(int node)> name_of, Expel expel)
    : mesh_(mesh),
      timers_(timers),
      least_kbps_(least_kbps),
      name_of_(std::move(name_of)),
      expel_(std::move(expel)) {}

void SlowExpulsion::too_slow(const std::vector<SlowNode>& places, const Membership& members) {
  if (timer_) return;
  std::vector<int> all(static_cast<std::size_t>(mesh_->size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> fast = members.nodes;
  std::vector<std::pair<int, std::string>> away;
  std::string names;
  const auto mbps = [](std::int64_t kbps) { return static_cast<double>(kbps) / 1000; };
  for (const SlowNode& s : places) {
    const int node = members.nodes[static_cast<std::size_t>(s.node)];
    std::erase(fast, node);
    names += (names.empty() ? "" : ", ") + name_of_(node);
    if (node == mesh_->rank() || s.intervals < SlowNodes::kIntervals) continue;
    away.emplace_back(node, printed("it carried %.4g Mbit/s, less than RIFFLE_MIN_RATE=%.4g, in %d "
                                    "replanning intervals in a row",
                                    mbps(s.kbps), mbps(least_kbps_), s.intervals));
  }
  if (!holds_quorum(all, fast)) {
    if (std::exchange(said_too_many_, true)) return;
    return log_warn(
        "slower than RIFFLE_MIN_RATE: {}; no node is sent away, for only {} of {} nodes "
        "would be left, which is no quorum",
        names, fast.size(), all.size());
  }
  if (places.front().node == 0 && !std::exchange(said_it_stays_, true)) {
    log_warn("{} is slower than RIFFLE_MIN_RATE; it stays, for it is the one that plans",
             name_of_(mesh_->rank()));
  }
  if (away.empty()) return;
  // Later: the replanning intervals that say so end with the term.
  timer_ = timers_->call_at(mesh_->now_ns(), [this, away] {
    timer_.reset();
    expel_(away);
  });
}

void SlowExpulsion::stop() {
  if (timer_) timers_->cancel(*timer_);
  timer_.reset();
}

}  // namespace riffle
