#include "plugin/transport/tcp/tcp_transport.h"

#include <utility>

#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/tcp/tcp_listener.h"
#include "plugin/transport/tcp/tcp_mesh.h"
#include "plugin/transport/tcp/tcp_pending.h"

namespace riffle {
namespace {

// What listen() made: no other transport's listener comes here.
TcpListener& tcp(TransportListener& listener) { return static_cast<TcpListener&>(listener); }

}  // namespace

Result<std::unique_ptr<TransportListener>> TcpTransport::listen(int device,
                                                                std::uint64_t comm_id) const {
  auto listener = TcpListener::bind(options_, device, comm_id);
  if (!listener) return listener.status();
  return std::unique_ptr<TransportListener>(std::move(*listener));
}

Result<std::unique_ptr<PendingLink>> TcpTransport::connect(Reactor& reactor,
                                                           const HandleContent& to, int device,
                                                           const std::string& role,
                                                           Linked linked) const {
  const Result<const Device*> own = find_device(options_.devices, device);
  if (!own) return own.status();
  return std::unique_ptr<PendingLink>(std::make_unique<TcpConnecting>(
      reactor, options_, to, (*own)->addresses, role, std::move(linked)));
}

std::unique_ptr<PendingLink> TcpTransport::accept(Reactor& reactor,
                                                  std::unique_ptr<TransportListener> listener,
                                                  const std::string& role, Linked linked) const {
  return std::make_unique<TcpAccepting>(reactor, options_, tcp(*listener), role, std::move(linked));
}

std::unique_ptr<TransportMesh> TcpTransport::make_mesh(Reactor& reactor,
                                                       std::unique_ptr<TransportListener> listener,
                                                       std::vector<HandleContent> handles, int rank,
                                                       const MeshOptions& options,
                                                       FrameSink* sink) const {
  return make_tcp_mesh(reactor, options_, tcp(*listener), std::move(handles), rank, options, sink);
}

}  // namespace riffle
