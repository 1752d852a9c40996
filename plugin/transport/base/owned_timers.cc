#include "plugin/transport/base/owned_timers.h"

#include <map>
#include <utility>

#include "plugin/config/caught.h"

namespace riffle {

struct OwnedTimers::State {
  explicit State(Failed f) : failed(std::move(f)) {}
  std::map<std::uint64_t, std::uint64_t> running;  // our number -> that of the service
  std::uint64_t next = 1;
  bool is_over = false;
  const Failed failed;
};

OwnedTimers::OwnedTimers(TimerService* timers, Failed failed)
    : timers_(timers), state_(std::make_shared<State>(std::move(failed))) {}

OwnedTimers::~OwnedTimers() {
  clear();
  state_->is_over = true;
}

std::uint64_t OwnedTimers::call_at(std::uint64_t when_ns, std::function<void()> f) {
  const std::uint64_t number = state_->next++;
  const auto entry = state_->running.emplace(number, 0).first;
  try {
    entry->second = timers_->call_at(when_ns, [state = state_, number, f = std::move(f)] {
      state->running.erase(number);
      catching(f, [&](const Status& why) {
        if (!state->is_over) state->failed(why);
      });
    });
  } catch (...) {
    state_->running.erase(entry);
    throw;
  }
  return number;
}

void OwnedTimers::cancel(std::uint64_t timer) {
  const auto entry = state_->running.find(timer);
  if (entry == state_->running.end()) return;
  timers_->cancel(entry->second);
  state_->running.erase(entry);
}

void OwnedTimers::clear() {
  for (const auto& [number, timer] : std::exchange(state_->running, {})) timers_->cancel(timer);
}

}  // namespace riffle
