// What nodes say to each other while they probe the network: the steps of a flow, and messages.
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame.h"

namespace riffle {

struct ProbeFrame {
  static constexpr FrameType kType = FrameType::kProbe;
  // The last two carry messages (prober.h).
  enum Step : std::uint8_t { kPing = 1, kPong, kData, kAnswer, kEnd, kOrder, kReport };
  std::uint8_t step = 0;
  std::uint32_t round = 0;  // number of the order that it belongs to
  // Sender's time of the ping, also in the pong, or of the data; in an answer how long those were
  // on their way.
  std::uint64_t stamp = 0;
  std::uint64_t bytes = 0;  // of the data that is answered; of a pong how long the ping took

  bool is_message() const { return step == kOrder || step == kReport; }

  FrameBody encode() const { return pack(step, round, stamp, bytes); }
  static ProbeFrame decode(const FrameBody& body) {
    ProbeFrame f;
    unpack(body, f.step, f.round, f.stamp, f.bytes);
    return f;
  }
};

}  // namespace riffle
