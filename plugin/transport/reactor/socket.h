// Descriptors and TCP sockets: owned, close-on-exec, non-blocking, known to the fork registry.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <utility>

#include "plugin/transport/base/errno_text.h"
#include "plugin/transport/base/handle.h"
#include "plugin/transport/device/device.h"
#include "topology/base/status.h"

namespace riffle {

// Owns one descriptor. Move only.
class Fd {
 public:
  Fd() = default;
  // The descriptor that `make` returns; closed, with errno as `make` left it, if negative.
  static Fd make(const std::function<int()>& make);
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  void reset();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  explicit Fd(int fd) : fd_(fd) {}
  int fd_ = -1;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

SocketAddress to_socket_address(const Endpoint& endpoint, std::uint32_t scope_id);
Result<Endpoint> to_endpoint(const NicAddress& nic);
std::string to_text(const SocketAddress& address);  // "10.0.0.1:4000", "[fe80::1]:4000"
std::string to_text(const Endpoint& endpoint);
SocketAddress remote_address_of(int fd);
bool is_same_host(const SocketAddress& a, const SocketAddress& b);  // whatever the ports

// A listening socket on `nic` and a port of the kernel's choice, which goes to `endpoint`. The
// sockets that it accepts have its congestion control.
Result<Fd> listen_on(const NicAddress& nic, Endpoint* endpoint,
                     const std::string& congestion = "auto");
// Starts to connect, from `from` if given and still an address of this machine; the socket becomes
// writable when connected or failed.
Result<Fd> start_connect(const SocketAddress& to, const NicAddress* from = nullptr,
                         const std::string& congestion = "auto");
// The outcome of start_connect once the socket is writable.
Status connect_outcome(int fd);
// After an outage the kernel tries again within an eighth of the peer timeout, at least a second:
// alone, TCP doubles the time between attempts, and waits as long again as the outage took. False:
// it cannot (before Linux 6.15), and nothing changes.
bool retry_within(int fd, std::uint64_t peer_timeout_ns);
// Routers on the way from the peer of an accepted connection, by the time to live that its
// handshake arrived with; -1: the kernel does not tell.
int hops_of(int fd);
// An accepted connection, and where it is from, or a closed Fd with `error` = errno.
Fd accept_from(int listener, int* error, SocketAddress* from = nullptr);

}  // namespace riffle
