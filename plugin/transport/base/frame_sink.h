// FrameSink: what the owner of a mesh or of a link is told. One set of calls from the socket to the
// engine: a link calls the sink of its mesh's owner without anything in between.
//
// Why addresses are asked for, instead of receives that are posted: the header of a frame says
// everything about where its payload belongs (sequence, level, shard), so the owner answers with an
// address when the header is in, and the payload is received in place. When a node may send is
// the owner's flow control (credits).
//
// Threads: the reactor's. Within a callback the owner may send, close and abort.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/transport/base/frame.h"
#include "topology/base/status.h"

namespace riffle {

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // A mesh's link to `peer` carries frames in both directions from now on. (One that is not a
  // mesh's is handed over when it does, and its peer is number 0.)
  virtual void opened(int /*peer*/) {}
  // A frame's header arrived. Returns where its `length` payload bytes go (any non-null pointer if
  // length is 0), or an error, after which the peer counts as lost with that error.
  virtual Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) = 0;
  // The whole payload is at `payload`, the address that get_receive_buffer() returned.
  virtual void arrived(int peer, const FrameHeader& header, std::byte* payload) = 0;
  // The frame was handed to the network completely; its payload is no longer read.
  virtual void sent(int peer, std::uint64_t cookie) = 0;
  // The peer closed on purpose (GOODBYE): nothing more comes from it. Not an error by itself.
  virtual void departed(int peer) = 0;
  // The peer is gone without a goodbye, or broke the protocol. Called once per peer. `why` may tell
  // its address; the owner knows its name.
  virtual void lost(int peer, const Status& why) = 0;
  // This side's own work threw (caught.h), and nothing that it was doing is certain any more.
  // Nothing more arrives from that peer; what the owner has to say of it still leaves. May come
  // again.
  virtual void failed(const Status& /*why*/) {}
};

}  // namespace riffle
