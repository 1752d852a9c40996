// Mesh over another NCCL NET library's connections, beside a mesh over Riffle's TCP. TCP comes up
// first, carries the library's handles, and stays: heartbeats, goodbyes and control messages go
// over it, so that losses are noticed and named as they are without the library. Frames of the
// engine, of probing and of sparse exchanges go over the library (library_link.h).
//
// A failure of the library is the loss of the peer concerned, on both sides.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/base/transport.h"
#include "plugin/transport/nccl_net/net.h"
#include "plugin/transport/tcp/tcp_listener.h"

namespace riffle::nccl_net {

struct LibraryPort {
  const Net* net = nullptr;
  std::shared_ptr<void> context;  // of the library (net.h)
  int device = 0;                 // of the library
};

// As Transport::make_mesh. Takes the listener's sockets.
std::unique_ptr<TransportMesh> make_library_mesh(Reactor& reactor,
                                                 const TransportOptions& transport,
                                                 const LibraryPort& port, TcpListener& listener,
                                                 std::vector<HandleContent> handles, int rank,
                                                 const MeshOptions& options, FrameSink* sink);

}  // namespace riffle::nccl_net
