// Link: everything between this process and one peer, with the transport's own ways of noticing
// that the peer is gone. NET holds one per connection; a mesh consists of them.
//
// Threads: the reactor's (reactor/reactor.h), calls and callbacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "plugin/transport/base/frame_sink.h"

namespace riffle {

// Bytes and frames since the link began, for telemetry.
struct LinkCounters {
  std::uint64_t bytes_sent = 0, bytes_received = 0, frames_sent = 0, frames_received = 0;
};

// What the network below has counted for the sending side; it costs nothing until asked.
struct WireAccount {
  std::uint64_t delivered_bytes = 0;  // acknowledged by the peer's side
  std::uint64_t busy_us = 0;          // data was sent and not acknowledged, or waiting to be sent
  std::uint64_t unread_us = 0;        // of that: the receiving process did not read
  std::uint64_t retransmits = 0;      // segments
  std::uint32_t rtt_us = 0;           // smoothed
};

class Link {
 public:
  virtual ~Link() = default;
  // Once, in the call that hands the link over: nothing arrives before.
  virtual void set_sink(FrameSink* sink) = 0;
  virtual const std::string& peer() const = 0;  // for messages: "receiver 10.0.0.3:4000"
  virtual std::size_t streams() const = 0;      // frames that may be on their way side by side

  // As Mesh::send. Sends nothing itself: the link's own turn comes soon.
  virtual void send(const FrameHeader& header, std::span<const std::byte> payload,
                    std::uint64_t cookie, std::uint64_t priority) = 0;
  // Sends now what can be sent, for owners that allow callbacks within this call.
  virtual void flush() = 0;
  // What was sent still goes out behind the scenes, but where there is no memory to keep it; the
  // sink hears nothing more.
  virtual void close() = 0;
  // Drops everything at once: no payload and no place is touched any more.
  virtual void abort() = 0;
};

}  // namespace riffle
