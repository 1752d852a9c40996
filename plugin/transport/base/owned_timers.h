// OwnedTimers: the timers of one owner. They end with it, and what a call throws is given to the
// owner, who else would wait for something that never comes.
//
// Threads: that of the timers; also for the destructor, unless clear() was called before it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "plugin/transport/base/timer_service.h"
#include "topology/base/status.h"

namespace riffle {

class OwnedTimers final : public TimerService {
 public:
  // `failed` may destroy the object. `timers` must outlive it.
  using Failed = std::function<void(const Status& why)>;
  OwnedTimers(TimerService* timers, Failed failed);
  ~OwnedTimers() override;
  OwnedTimers(const OwnedTimers&) = delete;
  OwnedTimers& operator=(const OwnedTimers&) = delete;

  // (The call may destroy the object, too.)
  std::uint64_t call_at(std::uint64_t when_ns, std::function<void()> f) override;
  void cancel(std::uint64_t timer) override;
  // Cancels all.
  void clear();

 private:
  struct State;
  TimerService* const timers_;
  const std::shared_ptr<State> state_;
};

}  // namespace riffle
