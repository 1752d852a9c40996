// Messages of any size between the nodes of a mesh, for connect: cut into frames, put together
// again.
//
// Threads: the mesh's owner. Limits: kMaxMessageBytes per message, one message per peer at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "plugin/transport/mesh.h"

namespace riffle {

inline constexpr std::uint64_t kMaxMessageBytes = 256u << 20;
// Cookies of control frames have this bit, so that others on the mesh can tell them apart.
inline constexpr std::uint64_t kControlCookie = 1ull << 62;
// Kind of the message in a kFault frame: one sentence; other kinds belong to connect (bootstrap.h).
inline constexpr std::uint32_t kFaultKind = 100;

class ControlChannel {
 public:
  using Received =
      std::function<void(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message)>;
  ControlChannel(Mesh* mesh, Received received);

  void send(int peer, FrameType type, std::uint32_t kind, std::vector<std::uint8_t> message);

  // The mesh's control and fault frames, as in MeshSink.
  Result<std::byte*> place(int peer, const FrameHeader& header);
  void arrived(int peer, const FrameHeader& header);
  void sent(std::uint64_t cookie);

 private:
  struct Outgoing {
    std::uint64_t cookie;
    int frames_left;
    std::vector<std::uint8_t> bytes;
  };
  struct Incoming {
    std::vector<std::uint8_t> bytes;
    std::uint64_t missing = 0;
  };

  Mesh* mesh_;
  Received received_;
  std::list<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;  // per peer
  std::uint64_t next_cookie_ = 0;
};

}  // namespace riffle
