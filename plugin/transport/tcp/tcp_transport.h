// The transport over TCP: several streams per peer, any frame on any stream, in-place receive,
// authenticated handshake, heartbeats, GOODBYE.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/base/transport.h"

namespace riffle {

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(TransportOptions options) : Transport(std::move(options)) {}

  Result<std::unique_ptr<TransportListener>> listen(int device,
                                                    std::uint64_t comm_id) const override;
  Result<std::unique_ptr<PendingLink>> connect(Reactor& reactor, const HandleContent& to,
                                               int device, const std::string& role,
                                               Linked linked) const override;
  std::unique_ptr<PendingLink> accept(Reactor& reactor, std::unique_ptr<TransportListener> listener,
                                      const std::string& role, Linked linked) const override;
  std::unique_ptr<TransportMesh> make_mesh(Reactor& reactor,
                                           std::unique_ptr<TransportListener> listener,
                                           std::vector<HandleContent> handles, int rank,
                                           const MeshOptions& options,
                                           FrameSink* sink) const override;
};

}  // namespace riffle
