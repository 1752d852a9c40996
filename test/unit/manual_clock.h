// Timers on a clock that tests move by hand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "plugin/transport/timer_service.h"

namespace riffle::testing {

class ManualClock final : public TimerService {
 public:
  std::uint64_t call_at(std::uint64_t when_ns, std::function<void()> f) override {
    timers_.emplace(std::pair(when_ns, ++last_), std::move(f));
    return last_;
  }
  void cancel(std::uint64_t timer) override {
    std::erase_if(timers_, [&](const auto& t) { return t.first.second == timer; });
  }
  void advance(std::uint64_t ns) {
    now_ns_ += ns;
    while (!timers_.empty() && timers_.begin()->first.first <= now_ns_) {
      const auto f = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      f();
    }
  }
  std::uint64_t now_ns() const { return now_ns_; }

 private:
  std::uint64_t now_ns_ = 1;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::function<void()>> timers_;
  std::uint64_t last_ = 0;
};

}  // namespace riffle::testing
