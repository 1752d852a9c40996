// SimBackground: a node's second thread in virtual time: work takes as long as it is said to take,
// one piece behind the other, and its end comes as a timer of the node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "plugin/collective/base/background.h"
#include "plugin/transport/sim/sim_network.h"

namespace riffle::sim {

class SimBackground final : public Background {
 public:
  // `takes_ns` is asked once per piece of work.
  SimBackground(SimNetwork* network, int rank, std::function<std::uint64_t()> takes_ns)
      : network_(network), rank_(rank), takes_ns_(std::move(takes_ns)) {}

  bool run(std::function<void()> work, std::function<void()> then) override {
    free_ns_ = std::max(free_ns_, network_->now_ns()) + takes_ns_();
    timers_.push_back(
        network_->timers(rank_).call_at(free_ns_, [work = std::move(work), then = std::move(then)] {
          work();
          then();
        }));
    return true;
  }
  // Nothing that was begun ends any more.
  void stop() {
    for (const std::uint64_t timer : timers_) network_->timers(rank_).cancel(timer);
    timers_.clear();
  }

 private:
  SimNetwork* const network_;
  const int rank_;
  const std::function<std::uint64_t()> takes_ns_;
  std::uint64_t free_ns_ = 0;
  std::vector<std::uint64_t> timers_;
};

}  // namespace riffle::sim
