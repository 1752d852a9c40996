// ProbeFlows: one node's part in the rounds of an active probe: sends its flows, counts what
// arrives.
//
// A flow begins with an empty message and its answer, which gives the round trip of the idle link.
// Then frames go out under a window (FlowWindow) until the time or the bytes of the order are used
// up; every one is answered. When all are answered the flow ends with an empty message. So a
// round is over for both ends only when nothing of it is left in any queue, and the next one starts
// on an idle network. Payloads are zeros that go nowhere.
//
// What a frame's header means: key the round, flags the step, seq the sender's time stamp (the
// answer to an empty message brings it back), total the bytes that an answer acknowledges. Answers
// say how long frames were on their way, by two clocks: of interest is how much longer than the
// quickest one.
//
// Threads: the mesh's owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "plugin/collective/connect/probe_frame.h"
#include "plugin/collective/connect/probe_messages.h"
#include "plugin/transport/base/frame_sink.h"
#include "topology/probe/flow_meter.h"

namespace riffle {

class Mesh;

class ProbeFlows {
 public:
  static constexpr std::size_t kFrameBytes = 16 << 10;

  explicit ProbeFlows(Mesh* mesh);

  // Starts our part of a round; `over` is called once, when our flows in both directions ended
  // (within this call if there are none). A round that was still running is forgotten. Every link
  // that the flows use must be open.
  void start(const ProbeOrder& order, std::function<void()> over);
  // What arrived at this node, and round trips of what it sent.
  std::vector<ProbeReport::Entry> entries() const;

  // Where payloads go.
  std::byte* get_receive_buffer();
  void arrived(int peer, const FrameHeader& header);

 private:
  struct Outgoing {
    int peer;
    probe::FlowWindow window;
    std::uint64_t stop_ns = 0;  // 0: not started
    std::uint64_t in_flight = 0;
    std::uint64_t sent = 0;
    std::uint64_t rtt_ns = 0;
    bool is_over = false;
  };
  // How long a frame to this peer was in queues, `way_ns` being what its answer says.
  std::uint64_t queued_ns(int peer, std::uint64_t way_ns);
  struct Incoming {
    int peer;
    probe::FlowMeter meter;
    std::uint64_t pinged_ns = 0, ping_stamp = 0;  // our clock, the sender's
    bool is_over = false;
  };
  void say(int peer, ProbeFrame::Step step, std::uint64_t stamp, std::uint64_t bytes);
  void pump(Outgoing& flow);
  void finish_if_over();

  Mesh* mesh_;
  ProbeOrder order_;
  std::function<void()> over_;
  std::vector<Outgoing> outgoing_;
  std::map<int, std::uint64_t> quickest_ns_;  // by peer, of all rounds
  std::vector<Incoming> incoming_;
  struct Early {
    int peer;
    ProbeFrame frame;
    std::uint32_t length;
  };
  void take(int peer, const ProbeFrame& frame, std::uint32_t length);

  std::vector<Early> early_;  // pings of the next round, before its order came
  std::vector<std::byte> zeros_, waste_;
};

}  // namespace riffle
