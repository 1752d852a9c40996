// What TcpListener::open() really makes, for those that accept on it.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/socket.h"
#include "plugin/transport/tcp_mesh.h"

namespace riffle {

class BoundListener final : public TcpListener {
 public:
  // Listens on the device's first three addresses under a fresh secret.
  static Result<std::unique_ptr<BoundListener>> bind(int device, std::uint64_t comm_id);

  const Handle& handle() const override { return handle_; }
  const HandleContent& content() const { return content_; }
  std::vector<Fd> take_sockets() { return std::move(sockets_); }
  std::uint32_t scope_id() const { return scope_id_; }

 private:
  std::vector<Fd> sockets_;
  HandleContent content_;
  Handle handle_;
  std::uint32_t scope_id_ = 0;  // of the device's IPv6 interface, for link-local peers
};

// The interface number that link-local IPv6 peers of `device` are reached through; 0 if none.
std::uint32_t scope_of(const Device& device);
Result<const Device*> find_device(int index);

}  // namespace riffle
