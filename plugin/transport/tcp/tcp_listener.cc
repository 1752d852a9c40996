#include "plugin/transport/tcp/tcp_listener.h"

#include <algorithm>

#include "plugin/transport/base/random.h"
#include "plugin/transport/handshake/handshake.h"
#include "plugin/transport/handshake/process_mark.h"
#include "plugin/version.h"

namespace riffle {

Result<const Device*> find_device(const DeviceChoice& choice, int index) {
  const Result<std::vector<Device>>& all = devices(choice);
  if (!all) return all.status();
  const std::size_t count = (*all).size();
  if (index < 0 || static_cast<std::size_t>(index) >= count) {
    return invalid_argument("device " + std::to_string(index) + " does not exist, there are 0.." +
                            std::to_string(count - 1));
  }
  return &(*all)[static_cast<std::size_t>(index)];
}

Result<std::unique_ptr<TcpListener>> TcpListener::bind(const TransportOptions& options, int device,
                                                       std::uint64_t comm_id) {
  const Result<const Device*> found = find_device(options.devices, device);
  if (!found) return found.status();
  auto listener = std::make_unique<TcpListener>();
  HandleContent& content = listener->content_;
  content.comm_id = comm_id;
  content.plugin_version = kPluginVersion;
  content.communicator = next_nonce();
  content.is_over_library = options.name == kOverLibrary;
  content.threads = content.is_over_library ? 1 : options.threads.per_mesh;
  content.encryption = static_cast<std::uint8_t>(mode_of(options.encryption));
  fill_random(content.secret.data(), content.secret.size());
  Status failure;
  for (const NicAddress& nic : (*found)->addresses) {
    Endpoint endpoint;
    endpoint.is_ipv6 = nic.is_ipv6;
    if (!has_room(content.endpoints, endpoint)) continue;  // a later IPv4 one may fit
    Result<Fd> socket = listen_on(nic, &endpoint, options.congestion);
    if (!socket) {
      failure = socket.status();  // an address that went away: the others do
      continue;
    }
    listener->sockets_.push_back(std::move(*socket));
    content.endpoints.push_back(endpoint);
  }
  if (content.endpoints.empty()) return failure;
  listener->handle_ = encode(content);
  listener->device_ = *found;
  return listener;
}

}  // namespace riffle
