// LinkClock: one timer for all links of a reactor, so that an idle process with many of them wakes
// as seldom as one with few. Links of the same period come at the same time. Reactor thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "plugin/config/caught.h"
#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle {

class LinkClock : public std::enable_shared_from_this<LinkClock> {
 public:
  class Hand {
   public:
    virtual ~Hand() = default;
    // May add and remove hands. What it throws is given to its tick_failed().
    virtual void tick() = 0;
    virtual void tick_failed(const Status& why) = 0;

   private:
    friend class LinkClock;
    std::uint64_t period_ns_ = 0;
    std::uint64_t due_ns_ = 0, was_due_ns_ = 0;
  };

  explicit LinkClock(Reactor& reactor)
      : timers_(&reactor, [this](const Status& why) { fail_all(why); }) {}
  // The reactor's; made by the first and gone with the last that holds it.
  static std::shared_ptr<LinkClock> of(Reactor& reactor) {
    return reactor.common<LinkClock>(Reactor::Common::kLinkClock, reactor);
  }

  void add(Hand& hand, std::uint64_t period_ns) {
    hand.period_ns_ = std::max<std::uint64_t>(period_ns, 1);
    hand.due_ns_ = next(hand, Reactor::now_ns());
    hands_.push_back(&hand);
    set_timer();
  }
  void remove(Hand& hand) {
    std::ranges::replace(hands_, &hand, nullptr);
    if (!is_visiting_) std::erase(hands_, nullptr);
  }
  // When its last tick was to come.
  static std::uint64_t was_due_ns(const Hand& hand) { return hand.was_due_ns_; }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  static std::uint64_t next(const Hand& hand, std::uint64_t now_ns) {
    return (now_ns / hand.period_ns_ + 1) * hand.period_ns_;
  }

  void set_timer() {
    std::uint64_t first_ns = kNever;
    for (const Hand* const hand : hands_) {
      if (hand != nullptr) first_ns = std::min(first_ns, hand->due_ns_);
    }
    if (is_visiting_ || first_ns >= set_to_ns_) return;
    const std::uint64_t timer = timers_.call_at(first_ns, [self = weak_from_this()] {
      if (const auto clock = self.lock()) clock->tick_due();
    });
    timers_.cancel(std::exchange(timer_, timer));
    set_to_ns_ = first_ns;
  }

  void tick_due() {
    const std::uint64_t now_ns = Reactor::now_ns();
    visit([&](Hand& hand) {
      if (hand.due_ns_ > now_ns) return;
      hand.was_due_ns_ = std::exchange(hand.due_ns_, next(hand, now_ns));
      catching([&] { hand.tick(); },
               [&](const Status& why) {
                 if (std::ranges::find(hands_, &hand) != hands_.end()) hand.tick_failed(why);
               });
    });
    set_to_ns_ = kNever;
    set_timer();
  }
  // The clock stands still: no hand may wait for it.
  void fail_all(const Status& why) {
    visit([&](Hand& hand) { hand.tick_failed(why); });
  }
  // All that are there, whatever they add, remove or throw.
  template <class F>
  void visit(F&& f) {
    const std::shared_ptr<LinkClock> self = shared_from_this();
    const bool was_visiting = std::exchange(is_visiting_, true);
    for (std::size_t i = 0; i < hands_.size(); ++i) {
      if (Hand* const hand = hands_[i]) {
        catching([&] { f(*hand); },
                 [](const Status& why) { log_caught("signs of life of a connection", why); });
      }
    }
    is_visiting_ = was_visiting;
    if (!is_visiting_) std::erase(hands_, nullptr);
  }

  std::vector<Hand*> hands_;  // null: it was removed meanwhile
  OwnedTimers timers_;
  std::uint64_t timer_ = 0;
  std::uint64_t set_to_ns_ = kNever;
  bool is_visiting_ = false;
};

}  // namespace riffle
