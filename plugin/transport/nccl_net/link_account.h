// What one link of the library's has moved and how long it was busy, for planning and telemetry.
// Reactor thread.
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/link.h"
#include "plugin/transport/base/link_activity.h"

namespace riffle::nccl_net {

struct LinkAccount {
  LinkCounters counters;  // what was sent counts when the library says that it has left
  std::uint64_t busy_ns = 0, unread_ns = 0;
  RateHints of_peer;

  // From now on: something is on its way; something waits for the peer to take messages.
  void note(std::uint64_t now_ns, bool is_under_way, bool waits_for_peer) {
    const std::uint64_t passed = now_ns - since_ns_;
    if (was_under_way_ && since_ns_ != 0) busy_ns += passed;
    if (waited_ && !was_under_way_ && since_ns_ != 0) unread_ns += passed;
    since_ns_ = now_ns;
    was_under_way_ = is_under_way;
    waited_ = waits_for_peer;
  }
  bool is_begun() const { return since_ns_ != 0; }
  LinkActivity activity() const {
    return {.out_bytes = counters.bytes_sent,
            .in_bytes = counters.bytes_received,
            .busy_ns = busy_ns,
            .of_peer = of_peer};
  }
  WireAccount wire() const {
    return {.delivered_bytes = counters.bytes_sent,
            .busy_us = (busy_ns + unread_ns) / 1000,
            .unread_us = unread_ns / 1000,
            .retransmits = 0,
            .rtt_us = 0};
  }

 private:
  std::uint64_t since_ns_ = 0;
  bool was_under_way_ = false, waited_ = false;
};

}  // namespace riffle::nccl_net
