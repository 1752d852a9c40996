// TransportMesh: a mesh as its owner holds it (transport.h makes it). Reactor thread.
#pragma once

#include <optional>
#include <vector>

#include "plugin/transport/base/link.h"
#include "plugin/transport/base/mesh_part.h"

namespace riffle {

class TransportMesh : public Mesh {
 public:
  // Says GOODBYE to all peers, drains behind the scenes for a bounded time, and never calls the
  // sink again. The object may be destroyed right after.
  virtual void close() = 0;
  // Of each further thread that MeshOptions named, where the transport has any use for it; they end
  // with the mesh.
  virtual std::vector<MeshPart*> parts() { return {}; }
  virtual LinkCounters counters(int peer) const = 0;
  // Descriptors that it takes, as far as it knows, to open the links to all peers from now on.
  virtual std::size_t descriptors_to_open() const { return 0; }
  // None where the network does not say, or before the link is up.
  virtual std::optional<WireAccount> wire_account(int /*peer*/) const { return std::nullopt; }
};

}  // namespace riffle
