#include "plugin/transport/nccl_net/library_transport.h"

#include <mutex>
#include <utility>

#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/nccl_net/exit_guard.h"
#include "plugin/transport/nccl_net/library_mesh.h"
#include "plugin/transport/nccl_net/slots.h"

namespace riffle::nccl_net {
namespace {

class LibraryListener final : public TransportListener {
 public:
  LibraryListener(LibraryPort port, std::unique_ptr<TcpListener> tcp, Device device)
      : port_(std::move(port)), tcp_(std::move(tcp)), device_(std::move(device)) {}
  const Handle& handle() const override { return tcp_->handle(); }
  const HandleContent& content() const override { return tcp_->content(); }
  const Device& device() const override { return device_; }
  const LibraryPort& port() const { return port_; }
  std::unique_ptr<TcpListener> take_tcp() { return std::move(tcp_); }

 private:
  const LibraryPort port_;
  std::unique_ptr<TcpListener> tcp_;
  const Device device_;
};

// What listen() made: no other transport's listener comes here.
LibraryListener& library(TransportListener& listener) {
  return static_cast<LibraryListener&>(listener);
}

Result<abi::NetPropsV12> properties_of(const Net& net, int device) {
  const LibraryUse use;
  if (!use) return system_error(net.text + ": the process exits");
  abi::NetPropsV12 p{};
  const std::string which = " of device " + std::to_string(device);
  if (const auto result = net.wire.properties(device, &p); result != abi::kSuccess) {
    return failed_call(net, "getProperties" + which, result);
  }
  if ((p.ptrSupport & abi::kPtrHost) == 0) {
    return system_error(net.text + ": ptrSupport" + which + " is " + std::to_string(p.ptrSupport) +
                        ", group plans need host memory (1)");
  }
  if (p.netDeviceType != abi::kDeviceHost) {
    return system_error(net.text + ": netDeviceType" + which + " is " +
                        std::to_string(p.netDeviceType) + ", group plans need transfers that the " +
                        "host drives (" + std::to_string(abi::kDeviceHost) + ")");
  }
  if (p.maxP2pBytes < kSlotBytes) {
    return system_error(net.text + ": maxP2pBytes" + which + " is " +
                        std::to_string(p.maxP2pBytes) + ", group plans need " +
                        std::to_string(kSlotBytes));
  }
  return p;
}

// For planning: the library's rate, and for messages Riffle's own addresses.
Device shown_device(const abi::NetPropsV12& p, const Device& own) {
  Device shown = own;
  if (p.name != nullptr) shown.name = p.name;
  if (p.pciPath != nullptr) shown.pci_path = p.pciPath;
  shown.knows_speed = p.speed > 0;
  if (p.speed > 0) shown.speed_mbps = p.speed;
  return shown;
}

}  // namespace

Result<std::unique_ptr<TransportListener>> LibraryTransport::listen(int device,
                                                                    std::uint64_t comm_id) const {
  // The border refuses such a job; nothing may go out in the clear if it did not.
  if (options_.encryption.is_on) {
    return invalid_argument("RIFFLE_ENCRYPT=1 does not cover RIFFLE_NET's library");
  }
  const auto net = net_in_use();
  if (!net) return net.status();
  const auto properties = properties_of(**net, device);
  if (!properties) return properties.status();
  const auto& own = devices(options_.devices);
  if (!own) return own.status();
  auto tcp = TcpListener::bind(options_, device % static_cast<int>((*own).size()), comm_id);
  if (!tcp) return tcp.status();
  auto context = make_context(**net, comm_id);
  if (!context) return context.status();
  static std::once_flag first;
  std::call_once(first, guard_exit);
  Device shown = shown_device(*properties, (*tcp)->device());
  return std::unique_ptr<TransportListener>(std::make_unique<LibraryListener>(
      LibraryPort{*net, std::move(*context), device}, std::move(*tcp), std::move(shown)));
}

Result<std::unique_ptr<PendingLink>> LibraryTransport::connect(Reactor& reactor,
                                                               const HandleContent& to, int device,
                                                               const std::string& role,
                                                               Linked linked) const {
  return tcp_.connect(reactor, to, device, role, std::move(linked));
}

std::unique_ptr<PendingLink> LibraryTransport::accept(Reactor& reactor,
                                                      std::unique_ptr<TransportListener> listener,
                                                      const std::string& role,
                                                      Linked linked) const {
  return tcp_.accept(reactor, library(*listener).take_tcp(), role, std::move(linked));
}

std::unique_ptr<TransportMesh> LibraryTransport::make_mesh(
    Reactor& reactor, std::unique_ptr<TransportListener> listener,
    std::vector<HandleContent> handles, int rank, const MeshOptions& options,
    FrameSink* sink) const {
  LibraryListener& own = library(*listener);
  return make_library_mesh(reactor, options_, own.port(), *own.take_tcp(), std::move(handles), rank,
                           options, sink);
}

}  // namespace riffle::nccl_net
