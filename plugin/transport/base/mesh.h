// Mesh: the links between one node of a communicator and its peers, and nothing more. The engine
// (plugin/collective) is written against this interface, so that the same code runs over every
// transport, over the in-memory one of the tests and in simulated time. A mesh never queues a
// payload of its own.
//
// Threads: everything here, calls and callbacks (frame_sink.h), happens on one thread, the owner's
// progress thread. A mesh must not call its sink from within a call of the sink's owner (no
// re-entrance): callbacks come from the mesh's own turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/frame_sink.h"
#include "plugin/transport/base/link_activity.h"
#include "topology/base/status.h"

namespace riffle {

inline constexpr int kMostWeight = 16;       // Mesh::set_peer_weights
inline constexpr std::uint64_t kUrgent = 0;  // a priority: before all data

class Mesh {
 public:
  virtual ~Mesh() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Of a node in the job, for messages: where nodes were lost, meshes number what is left anew.
  virtual int number_of(int node) const { return node; }

  // Starts a link to `peer` (both sides must ask for it); sink.opened() or sink.lost() follows.
  // Asking again is harmless.
  virtual void open(int peer) = 0;

  // Queues a frame. `payload` must stay readable and unchanged until sent(peer, cookie), which is
  // called for every frame unless the peer is lost or the mesh aborted. Frames of lower `priority`
  // value go first; equal ones in the order of the calls. Different frames to one peer may overtake
  // each other on the way (several streams). Precondition: the link is open.
  virtual void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
                    std::uint64_t cookie, std::uint64_t priority) = 0;

  // For measuring (topology/probe/passive.h); cheap enough for every few milliseconds. A mesh that
  // cannot tell says zero.
  virtual LinkActivity activity(int /*peer*/) { return {}; }
  // Routers between this node and a peer, for rack hints; -1: this side of the link cannot tell.
  virtual int hops(int /*peer*/) const { return -1; }
  // What all others of the node have moved over the same NICs
  // (plugin/transport/device/nic_traffic.h).
  virtual NicBytes others_on_nics() { return {}; }
  // Goes with all further frames to this peer.
  virtual void hint(int /*peer*/, RateHints /*hints*/) {}
  // Where frames to several peers, or from several, compete for a link, each way gets a part of it
  // in proportion to its weight: as if it were so many connections (1 to kMostWeight). Both nodes
  // of a pair must give each other the same weight. None, as at the start: all get the same.
  virtual void set_peer_weights(std::span<const int> /*weights*/) {}

  // Closes the link to one peer: what was sent to it still goes out, with a goodbye behind it, but
  // nothing more comes from it, no payload of its frames is touched, and sent() comes no more.
  virtual void dismiss(int peer) = 0;

  // Monotonic time in nanoseconds: the clock of deadlines (virtual in simulation). Any thread.
  virtual std::uint64_t now_ns() const = 0;

  // Stops reading and writing payloads at once: when abort() returns no address given to the mesh
  // is touched any more. Peers learn of it as a lost peer (no GOODBYE).
  virtual void abort() = 0;
};

}  // namespace riffle
