// TcpListener: sockets that listen on a device's addresses, and what a peer needs to connect to
// them.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/base/transport.h"
#include "plugin/transport/device/device.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle {

class TcpListener final : public TransportListener {
 public:
  // Listens under a fresh secret on the device's addresses, the fastest NIC's first, as many as a
  // handle names (handle.h).
  static Result<std::unique_ptr<TcpListener>> bind(const TransportOptions& options, int device,
                                                   std::uint64_t comm_id);

  const Handle& handle() const override { return handle_; }
  const HandleContent& content() const override { return content_; }
  const Device& device() const override { return *device_; }
  std::vector<Fd> take_sockets() { return std::move(sockets_); }

 private:
  std::vector<Fd> sockets_;
  HandleContent content_;
  Handle handle_;
  const Device* device_ = nullptr;
};

Result<const Device*> find_device(const DeviceChoice& choice, int index);

}  // namespace riffle
