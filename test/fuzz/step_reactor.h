// A reactor without a thread: what is due is done when run() is called, so that a case depends on
// nothing but its input.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "plugin/transport/reactor/reactor.h"

namespace riffle::fuzz {

class StepReactor final : public Reactor {
 public:
  StepReactor() : Reactor({0, 0}) {}
  void wake(WakeHandler* handler) override {
    if (std::ranges::find(woken_, handler) == woken_.end()) woken_.push_back(handler);
  }
  void poll() override {}
  void keep_thread(int) override {}
  void run_and_wait(const std::function<void()>& f) override { f(); }
  void add(int fd, std::uint32_t, FdHandler* handler) override { handlers_[fd] = handler; }
  void modify(int fd, std::uint32_t, FdHandler* handler) override { handlers_[fd] = handler; }
  void remove(int fd) override { handlers_.erase(fd); }
  void forget(WakeHandler* handler) override { std::erase(woken_, handler); }
  void start_polling(Poller*) override {}
  void stop_polling(Poller*) override {}
  std::uint64_t call_at(std::uint64_t, std::function<void()> f) override {
    timers_.emplace(++last_timer_, std::move(f));
    return last_timer_;
  }
  void cancel(std::uint64_t timer) override { timers_.erase(timer); }

  // Until nothing moves; a socket at its end would go on for ever.
  void run() {
    constexpr int kMostTurns = 12;
    for (int turn = 0; turn < kMostTurns && (serve_sockets() || !woken_.empty()); ++turn) {
      for (std::size_t n = woken_.size(); n > 0 && !woken_.empty(); --n) {
        WakeHandler* const handler = woken_.front();
        woken_.pop_front();
        handler->on_wake();
      }
    }
  }
  // All that wait now, whatever they wait for; one may cancel another.
  void pass_time() {
    const std::uint64_t last = last_timer_;
    while (!timers_.empty() && timers_.begin()->first <= last) {
      timers_.extract(timers_.begin()).mapped()();
    }
  }

 private:
  bool serve_sockets() {
    bool is_any_readable = false;
    const auto handlers = handlers_;  // which come and go
    for (const auto& [fd, handler] : handlers) {
      const auto at = handlers_.find(fd);
      if (at == handlers_.end() || at->second != handler) continue;
      pollfd asked{fd, POLLIN | POLLOUT | POLLRDHUP, 0};
      if (::poll(&asked, 1, 0) <= 0) continue;
      is_any_readable |= (asked.revents & POLLIN) != 0;
      handler->on_ready(static_cast<std::uint32_t>(asked.revents));
    }
    return is_any_readable;
  }

  std::map<int, FdHandler*> handlers_;
  std::deque<WakeHandler*> woken_;
  std::map<std::uint64_t, std::function<void()>> timers_;
  std::uint64_t last_timer_ = 0;
};

}  // namespace riffle::fuzz
