// What a simulated network is like, apart from the rates of its fabric.
#pragma once

#include <cstdint>

namespace riffle::sim {

struct SimOptions {
  std::uint64_t seed = 1;  // of jitter, losses, detection times

  // Latency, one way; 0 for one of them: the fabric's. Jitter is drawn per frame from [0, jitter].
  std::uint64_t latency_ns = 0;             // within a rack
  std::uint64_t cross_rack_latency_ns = 0;  // between racks
  std::uint64_t jitter_ns = 0;
  int streams = 2;            // per pair; frames of different streams may overtake each other
  std::uint64_t tick_ns = 1;  // see fluid.h

  // A node's progress thread: time for every frame sent and received, and per payload byte
  // received (copying and reducing). 0: processors are infinitely fast.
  std::uint64_t frame_cpu_ns = 0;
  double byte_cpu_ns = 0;

  // A lost packet delays its frame, and those behind it on the stream, by a retransmission timeout.
  double loss_per_frame = 0;
  std::uint64_t retransmit_ns = 200'000'000;

  // A dead node's peers notice after a time from [detect/10, detect]; a silent one's after the
  // peer timeout.
  std::uint64_t detect_ns = 1'000'000;
  std::uint64_t peer_timeout_ns = 3'000'000'000;

  // A link that is not open yet to a node that is gone stays so, as over TCP, where the connector
  // tries again; else its loss is noticed as that of an open one.
  bool opens_patiently = false;

  // Without payloads only headers travel: for studies of time, with operations that are `dry`.
  bool carries_payload = true;
  // The header is announced (place) as soon as it is in, long before the payload; else together.
  bool early_headers = true;
  // Memory that is being received into holds garbage until the frame is complete.
  bool poisons = false;
};

}  // namespace riffle::sim
