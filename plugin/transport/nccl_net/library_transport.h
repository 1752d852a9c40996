// The transport over another NCCL NET library's connections, for COLLNET's meshes, beside Riffle's
// TCP (library_mesh.h). Its devices are the library's; the addresses that handles tell are those of
// Riffle's own. Single links, which NET would have, stay TCP's: NET is the library itself.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/tcp/tcp_transport.h"

namespace riffle::nccl_net {

class LibraryTransport final : public Transport {
 public:
  explicit LibraryTransport(TransportOptions options)
      : Transport(std::move(options)), tcp_(options_) {}

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

 private:
  const TcpTransport tcp_;
};

}  // namespace riffle::nccl_net
