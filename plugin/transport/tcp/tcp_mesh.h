// Mesh over TCP. The node of the higher rank connects, the lower one accepts, or both use a link
// that other communicators of the two processes have (tcp_peer.h, shared_links.h). A peer counts as
// lost when its link breaks or nothing (not even a heartbeat) came for RIFFLE_PEER_TIMEOUT.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/base/transport.h"
#include "plugin/transport/tcp/tcp_listener.h"

namespace riffle {

// As Transport::make_mesh. Takes the listener's sockets.
std::unique_ptr<TransportMesh> make_tcp_mesh(Reactor& reactor, const TransportOptions& transport,
                                             TcpListener& listener,
                                             std::vector<HandleContent> handles, int rank,
                                             const MeshOptions& options, FrameSink* sink);

}  // namespace riffle
