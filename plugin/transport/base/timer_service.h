// TimerService: calls at a given time. Real time is the reactor's; simulations have a virtual one.
// Whose timers they are, and who hears of what they throw: owned_timers.h.
#pragma once

#include <cstdint>
#include <functional>

namespace riffle {

// One thread, the one that makes the calls. The clock is that of Mesh::now_ns().
class TimerService {
 public:
  virtual ~TimerService() = default;
  virtual std::uint64_t call_at(std::uint64_t when_ns, std::function<void()> f) = 0;  // timer id
  virtual void cancel(std::uint64_t timer) = 0;  // harmless for a timer that ran
};

}  // namespace riffle
