// Messages of any size between the nodes of a mesh, for connect and replanning intervals: cut into
// frames, put together again. Messages from one peer are received in the order in which it sent
// them, although their frames may overtake each other on different streams.
//
// Threads: the mesh's owner. Limits: kMaxMessageBytes for all messages under way from one peer, and
// kMaxMessagesAhead of them; beyond, the peer is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "plugin/collective/base/frames.h"
#include "plugin/transport/base/frame_sink.h"

namespace riffle {

class Mesh;

inline constexpr std::uint64_t kMaxMessageBytes = 256u << 20;
inline constexpr std::uint64_t kMaxMessagesAhead = 64;
// Kind of the message in a kFault frame: one sentence; other kinds belong to connect (bootstrap.h).
inline constexpr std::uint32_t kFaultKind = 100;
// What a node with a stalled collective waits for (elastic/stall_watch.h).
inline constexpr std::uint32_t kStallKind = 101;

// Part of a message. Frames of type kFault say the same.
struct ControlFrame {
  static constexpr FrameType kType = FrameType::kControl;
  std::uint64_t number = 0;  // of the message, from this peer
  std::uint64_t offset = 0;  // of this part
  std::uint64_t total = 0;   // bytes of the message
  std::uint32_t kind = 0;

  FrameBody encode() const { return pack(number, offset, total, kind); }
  static ControlFrame decode(const FrameBody& body) {
    ControlFrame f;
    unpack(body, f.number, f.offset, f.total, f.kind);
    return f;
  }
};

class ControlChannel final : public FrameHandler {
 public:
  using Received =
      std::function<void(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message)>;
  ControlChannel(Mesh* mesh, Received received);

  void send(int peer, FrameType type, std::uint32_t kind, std::vector<std::uint8_t> message);

  // kControl and kFault.
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;

 private:
  struct Outgoing {
    std::uint64_t cookie;
    int frames_left;
    std::vector<std::uint8_t> bytes;
  };
  struct Incoming {
    std::uint32_t kind = 0;
    bool has_begun = false;
    // Bytes that have no place yet, and bytes that are not here yet. A part that came twice would
    // make the first go below zero, so memory that is being received into stays.
    std::uint64_t unplaced = 0, missing = 0;
    std::vector<std::uint8_t> bytes;
  };
  struct Peer {
    std::uint64_t next_out = 0;      // number of the next message to it
    std::uint64_t next_in = 0;       // number of the first message in `incoming`
    std::uint64_t bytes = 0;         // in `incoming`
    std::vector<Incoming> incoming;  // rarely more than one
  };

  Mesh* mesh_;
  Received received_;
  std::list<Outgoing> outgoing_;
  std::vector<Peer> peers_;
  std::uint64_t next_cookie_ = 0;
};

}  // namespace riffle
