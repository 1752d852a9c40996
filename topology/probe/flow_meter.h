// FlowMeter: what the receiver of a probe flow counts, and the rate it concludes.
//
// What a sender writes goes into buffers and what it sends first meets empty queues and full token
// buckets; so only the receiver counts, and only after the start-up: the first 40 % of the time are
// left out, and so is the last tenth, when other flows of the round may have ended already. Times
// are the receiver's own; no clocks are compared.
//
// Flows that share a link take turns at it: one starts late or waits for what was lost while others
// have it all. What they carried together is the sum of what each did within the same time, from
// 40 to 90 % of the round's, whether it ran or not. Pure, no allocation after construction.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "topology/probe/rounds.h"

namespace riffle::probe {

class FlowMeter {
 public:
  // What arrives later than `limit_ns` after the flow's first bytes says nothing about its own
  // rate.
  explicit FlowMeter(std::uint64_t limit_ns);

  // When the flow's first bytes should have arrived, had nothing been in their way: the begin of
  // the time that all flows of the round have. Else it is when they did.
  void begins(std::uint64_t at_ns) { begin_ns_ = at_ns; }

  void arrived(std::uint64_t now_ns, std::uint64_t bytes);
  // All that arrived.
  std::uint64_t bytes() const { return total_bytes_; }

  // Rates and steadiness; rtt_us stays 0. `is_cut_short`: the flow was over before the round was,
  // as it had sent all that it might.
  Sample sample(bool is_cut_short = false) const;

 private:
  static constexpr std::size_t kBins = 512;
  struct Bin {
    std::uint64_t bytes = 0;    // up to and with this bin
    std::uint64_t last_ns = 0;  // arrival of its last bytes, since the first
  };
  // The state at the end of the last bin that is over at `at_ns`.
  Bin state_at(std::uint64_t at_ns) const;
  Sample own_rate() const;
  double bytes_by(std::uint64_t since_begin_ns) const;

  std::uint64_t limit_ns_;
  std::optional<std::uint64_t> begin_ns_;
  std::uint64_t first_ns_ = 0;
  std::uint64_t last_ns_ = 0;  // since the first, within the limit
  std::uint64_t total_bytes_ = 0;
  std::array<Bin, kBins> bins_{};  // of twice the limit
};

// FlowWindow: how much of a probe flow may be on its way. It grows and shrinks to what keeps the
// queues on the way filled for about kQueueNs: then the link is busy all the time, yet loses
// nothing and is empty again soon after the round. Only the way out counts (as in LEDBAT, RFC 6817,
// 2.3): what flows of the other direction do to the answers must not hold this one back. Pure.
class FlowWindow {
 public:
  static constexpr std::uint64_t kQueueNs = 12'000'000;
  static constexpr std::uint64_t kLeastBytes = 16 << 10;
  static constexpr std::uint64_t kFirstBytes = 64 << 10;
  static constexpr std::uint64_t kMostBytes = 8 << 20;

  bool may_send(std::uint64_t in_flight_bytes) const { return in_flight_bytes < bytes_; }
  // `bytes` were acknowledged that had been in queues for `queue_ns`.
  void acknowledged(std::uint64_t bytes, std::uint64_t queue_ns);
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_ = kFirstBytes;
};

}  // namespace riffle::probe
