// The reactor's pollers (reactor.h), and how long its thread may sleep while there are any: not at
// all just after something moved, as more is likely, then for times that leave the processor to
// others and cost a message little. Guarded as the reactor thread's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/transport/reactor/reactor.h"

namespace riffle {

class Pollers {
 public:
  void add(Reactor::Poller* poller) {
    if (std::ranges::find(all_, poller) == all_.end()) all_.push_back(poller);
    moved_ns_ = Reactor::now_ns();
  }
  // During ask(), too.
  void remove(Reactor::Poller* poller) { std::ranges::replace(all_, poller, nullptr); }
  bool is_empty() const { return all_.empty(); }
  Reactor::Poller* at(std::size_t i) const { return all_[i]; }  // null: it was removed

  // Calls ask_one(i) for each that is there, which says whether something moved.
  template <class AskOne>
  void ask(AskOne&& ask_one) {
    bool moved = false;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i] != nullptr && ask_one(i)) moved = true;
    }
    std::erase(all_, nullptr);
    if (moved) moved_ns_ = Reactor::now_ns();
  }

  // The longest sleep before the next turn.
  std::uint64_t pause_ns(std::uint64_t now_ns) const {
    if (all_.empty()) return ~std::uint64_t{0};
    const std::uint64_t quiet_ns = now_ns - std::min(now_ns, moved_ns_);
    if (quiet_ns < 10'000) return 0;
    return quiet_ns < 1'000'000 ? 20'000 : 50'000;
  }

 private:
  std::vector<Reactor::Poller*> all_;
  std::uint64_t moved_ns_ = 0;
};

}  // namespace riffle
