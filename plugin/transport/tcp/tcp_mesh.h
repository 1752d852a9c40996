// Mesh over TCP: several streams per peer, any frame on any stream, in-place receive, authenticated
// handshake, heartbeats, GOODBYE.
//
// Use: TcpListener::open() on any thread; its handle goes to the peers by NCCL's bootstrap; then
// make_tcp_mesh() with all nodes' handles. From there everything happens on the reactor thread.
// The node of the higher rank connects, the lower one accepts. A connection counts as lost when it
// breaks or nothing (not even a heartbeat) came for RIFFLE_PEER_TIMEOUT.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/base/mesh.h"
#include "plugin/transport/device/handle.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/tcp/tcp_account.h"

namespace riffle {

class TcpListener {
 public:
  virtual ~TcpListener() = default;  // any thread; stops accepting
  static Result<std::unique_ptr<TcpListener>> open(int device, std::uint64_t comm_id);
  virtual const Handle& handle() const = 0;
};

struct TcpMeshOptions {
  int streams = 2;  // to each peer of a lower rank, 1..16, more if it takes more to use all NICs;
                    // the others connect with theirs
  std::uint64_t peer_timeout_ns = 60'000'000'000;
  std::uint64_t connect_timeout_ns = 60'000'000'000;
};

class TcpMesh : public Mesh {
 public:
  // Bytes and frames per peer since the start, for telemetry.
  struct LinkCounters {
    std::uint64_t bytes_sent = 0, bytes_received = 0, frames_sent = 0, frames_received = 0;
  };
  virtual LinkCounters counters(int peer) const = 0;
  // The kernel's account of the link to `peer`, all zero before it is up. Reactor thread.
  virtual TcpAccount account(int peer) const = 0;
  // Says GOODBYE to all peers, lets the kernel drain behind the scenes for a bounded time, and
  // never calls the sink again. The object may be destroyed right after. Reactor thread.
  virtual void close() = 0;
};

// Reactor thread. `listener` is this node's own, already open; `handles[rank]` belongs to it. The
// communicator number on the wire is that of handles[0]. The sink must outlive the mesh. Within a
// callback the mesh may be closed or aborted, but not destroyed.
std::unique_ptr<TcpMesh> make_tcp_mesh(Reactor& reactor, std::unique_ptr<TcpListener> listener,
                                       std::vector<HandleContent> handles, int rank,
                                       const TcpMeshOptions& options, MeshSink* sink);

}  // namespace riffle
