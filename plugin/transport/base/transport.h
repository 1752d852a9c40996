// Transport: one way of carrying frames between nodes. It listens, connects single links (NET) and
// builds meshes (COLLNET). Nothing outside a transport's own folder knows which one it is;
// factory.h makes it by name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/transport/base/frame_sink.h"
#include "plugin/transport/base/handle.h"
#include "plugin/transport/base/link.h"
#include "plugin/transport/base/options.h"

namespace riffle {

class Deliveries;
struct Device;
class Reactor;
class TransportMesh;

// Any thread. Stops accepting when it goes.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  virtual const Handle& handle() const = 0;          // for the peers, by NCCL's bootstrap
  virtual const HandleContent& content() const = 0;  // the same, decoded
  virtual const Device& device() const = 0;
};

struct MeshOptions {
  std::uint64_t peer_timeout_ns = 60'000'000'000;
  std::uint64_t connect_timeout_ns = 60'000'000'000;
  std::vector<std::shared_ptr<Reactor>> further;  // that share its work (mesh_part.h)
  std::shared_ptr<Deliveries> deliveries;         // of its links; null: not counted
};

// A link on its way up. Destroying it drops what has not become a link. Reactor thread.
class PendingLink {
 public:
  virtual ~PendingLink() = default;
};

class Transport {
 public:
  // Called once, in a turn of the reactor of its own; may destroy the PendingLink.
  using Linked = std::function<void(Result<std::shared_ptr<Link>>)>;

  virtual ~Transport() = default;
  const TransportOptions& options() const { return options_; }

  // Any thread. `comm_id` is NCCL's communicator hash, 0 if it is not known.
  virtual Result<std::unique_ptr<TransportListener>> listen(int device,
                                                            std::uint64_t comm_id) const = 0;

  // Reactor thread, all three. `role`: what the peer is to this node, for messages ("receiver");
  // its address is added.
  virtual Result<std::unique_ptr<PendingLink>> connect(Reactor& reactor, const HandleContent& to,
                                                       int device, const std::string& role,
                                                       Linked linked) const = 0;
  // The one connector that knows the listener's secret. It may never come.
  virtual std::unique_ptr<PendingLink> accept(Reactor& reactor,
                                              std::unique_ptr<TransportListener> listener,
                                              const std::string& role, Linked linked) const = 0;
  // `listener` is this node's own; `handles[rank]` belongs to it. The communicator number on the
  // wire is that of handles[0]. The sink must outlive the mesh. Within a callback the mesh may be
  // closed or aborted, but not destroyed.
  virtual std::unique_ptr<TransportMesh> make_mesh(Reactor& reactor,
                                                   std::unique_ptr<TransportListener> listener,
                                                   std::vector<HandleContent> handles, int rank,
                                                   const MeshOptions& options,
                                                   FrameSink* sink) const = 0;

 protected:
  explicit Transport(TransportOptions options) : options_(std::move(options)) {}
  const TransportOptions options_;
};

}  // namespace riffle
