// What TcpListener::open() really makes, for those that accept on it.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/reactor/socket.h"
#include "plugin/transport/tcp/tcp_mesh.h"

namespace riffle {

class BoundListener final : public TcpListener {
 public:
  // Listens on the device's first three addresses under a fresh secret.
  static Result<std::unique_ptr<BoundListener>> bind(int device, std::uint64_t comm_id);

  const Handle& handle() const override { return handle_; }
  const HandleContent& content() const { return content_; }
  std::vector<Fd> take_sockets() { return std::move(sockets_); }
  const std::vector<NicAddress>& own() const { return own_; }

 private:
  std::vector<Fd> sockets_;
  HandleContent content_;
  Handle handle_;
  std::vector<NicAddress> own_;  // the device's addresses
};

Result<const Device*> find_device(int index);

}  // namespace riffle
