// Mesh: the links between one node of a communicator and its peers, and nothing more. The engine
// (plugin/collective) is written against this interface, so that the same code runs over TCP, over
// the in-memory transport of the tests and, later, in simulated time.
//
// Why "place" instead of posted receives: the header of a frame says everything about where its
// payload belongs (sequence, level, shard), so the owner answers with an address when the header is
// in, and the payload is received in place. Who may send when is the owner's flow control
// (credits); a mesh never queues a payload of its own.
//
// Threads: everything here, calls and callbacks, happens on one thread, the owner's progress
// thread. A mesh must not call its sink from within a call of the sink's owner (no re-entrance):
// callbacks come from the mesh's own turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/transport/base/frame.h"
#include "topology/base/status.h"

namespace riffle {

class MeshSink {
 public:
  virtual ~MeshSink() = default;
  // The link to `peer` carries frames in both directions from now on.
  virtual void opened(int peer) = 0;
  // A frame's header arrived. Returns where its `length` payload bytes go (any non-null pointer if
  // length is 0), or an error, after which the peer counts as lost with that error.
  virtual Result<std::byte*> place(int peer, const FrameHeader& header) = 0;
  // The whole payload is at `payload`, the address that place() returned.
  virtual void arrived(int peer, const FrameHeader& header, std::byte* payload) = 0;
  // The frame was handed to the network completely; its payload is no longer read.
  virtual void sent(int peer, std::uint64_t cookie) = 0;
  // The peer closed on purpose (GOODBYE): nothing more comes from it. Not an error by itself.
  virtual void departed(int peer) = 0;
  // The peer is gone without a goodbye, or broke the protocol. Called once per peer. `why` may tell
  // its address; who it is the owner knows better.
  virtual void lost(int peer, const Status& why) = 0;
};

// What happened on one link since it opened.
struct LinkActivity {
  std::uint64_t out_bytes = 0;  // delivered, not only queued
  std::uint64_t in_bytes = 0;
  std::uint64_t busy_ns = 0;  // the network had something of ours that it had not delivered
  RateHints of_peer;          // in its latest frame
};

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
  // Goes with all further frames to this peer.
  virtual void hint(int /*peer*/, RateHints /*hints*/) {}
  // Where frames to several peers, or from several, compete for a link, each way gets a part of it
  // in proportion to its weight: as if it were so many connections (1 to kMostWeight). Both nodes
  // of a pair must give each other the same weight. None, as at the start: everybody gets the same.
  virtual void set_peer_weights(std::span<const int> /*weights*/) {}

  // Closes the link to one peer: what was sent to it still goes out, with a goodbye behind it, but
  // nothing more comes from it, no payload of its frames is touched, and sent() comes no more.
  virtual void dismiss(int peer) = 0;

  // Monotonic time in nanoseconds: the clock of deadlines (virtual in simulation).
  virtual std::uint64_t now_ns() const = 0;

  // Stops reading and writing payloads at once: when abort() returns no address given to the mesh
  // is touched any more. Peers learn of it as a lost peer (no GOODBYE).
  virtual void abort() = 0;
};

}  // namespace riffle
