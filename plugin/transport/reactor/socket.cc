#include "plugin/transport/reactor/socket.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "plugin/transport/reactor/congestion.h"
#include "plugin/transport/reactor/fork_registry.h"

namespace riffle {
namespace {

// How much unsent data the kernel may hold per stream: little, so that a frame of higher priority
// does not wait behind much, and a slow stream does not swallow what a faster one could carry.
constexpr int kUnsentBytes = 128 << 10;

// A lost packet that no later one tells of waits for a timeout, by default 200 ms beyond the
// round-trip time, and all nodes wait with it: where queues are short and many send to one, that is
// most of an all-reduce's time. Timeouts as short as the kernel's clock allows cost nothing where
// nothing is lost (Vasudevan et al., "Safe and Effective Fine-grained TCP Retransmissions for
// Datacenter Communication", SIGCOMM 2009), if receivers acknowledge as soon. Linux 6.15 and later.
constexpr int kRtoMin = 45, kDelackMax = 46;      // TCP_RTO_MIN_US, TCP_DELACK_MAX_US
constexpr std::array kTimeoutsUs{8'000, 20'000};  // two ticks of a clock of 250 Hz, of 100 Hz

// A connection that gets no answer is tried again after twice the time, up to 120 s, and given up
// after 15 attempts (net.ipv4.tcp_retries2): 924 s. With attempts at most an eighth of the peer
// timeout apart that comes sooner, but not before the peer timeout, which decides. TCP_USER_TIMEOUT
// would put it off, and must not: it also ends connections to a peer that is stopped with a full
// window, as all are while a job is suspended, and keeps those to dead peers. Linux 6.15 and later.
constexpr int kRtoMax = 44;                                               // TCP_RTO_MAX_MS
constexpr std::uint64_t kLeastRtoMaxMs = 1'000, kMostRtoMaxMs = 120'000;  // what the kernel takes

// A kernel that lacks an option costs speed, not correctness.
bool set_option(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// Buffer sizes stay with the kernel's autotuning, which knows the round-trip time.
void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  for (const int us : kTimeoutsUs) {
    if (!set_option(fd, IPPROTO_TCP, kRtoMin, us)) continue;
    set_option(fd, IPPROTO_TCP, kDelackMax, us);
    break;
  }
}

Result<Fd> tcp_socket(int family) {
  Fd fd = Fd::make(
      [&] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP); });
  if (!fd.is_open()) return system_error("cannot create a socket: " + errno_text(errno));
  return fd;
}

// An address that went away meanwhile leaves the choice to the routing table.
void leave_from(int fd, const NicAddress& nic) {
  const Result<Endpoint> self = to_endpoint(nic);
  if (!self) return;
  set_option(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1);  // the port is chosen by connect
  const SocketAddress address = to_socket_address(*self, nic.scope_id);
  (void)::bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size);
}

}  // namespace

Fd Fd::make(const std::function<int()>& make) { return Fd(fork_registry::open(make)); }

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) fork_registry::close(std::exchange(fd_, -1));
}

SocketAddress to_socket_address(const Endpoint& endpoint, std::uint32_t scope_id) {
  SocketAddress out;
  if (endpoint.is_ipv6) {
    auto* a = reinterpret_cast<sockaddr_in6*>(&out.storage);
    a->sin6_family = AF_INET6;
    a->sin6_port = htons(endpoint.port);
    std::memcpy(&a->sin6_addr, endpoint.address.data(), 16);
    if (IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr)) a->sin6_scope_id = scope_id;
    out.size = sizeof *a;
  } else {
    auto* a = reinterpret_cast<sockaddr_in*>(&out.storage);
    a->sin_family = AF_INET;
    a->sin_port = htons(endpoint.port);
    std::memcpy(&a->sin_addr, endpoint.address.data(), 4);
    out.size = sizeof *a;
  }
  return out;
}

Result<Endpoint> to_endpoint(const NicAddress& nic) {
  Endpoint e;
  e.is_ipv6 = nic.is_ipv6;
  if (::inet_pton(nic.is_ipv6 ? AF_INET6 : AF_INET, nic.address.c_str(), e.address.data()) != 1) {
    return invalid_argument("'" + nic.address + "' of interface " + nic.interface +
                            " is not a numeric address");
  }
  return e;
}

std::string to_text(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.storage.ss_family == AF_INET6) {
    const auto* a = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    ::inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(a->sin6_port));
  }
  if (address.storage.ss_family == AF_INET) {
    const auto* a = reinterpret_cast<const sockaddr_in*>(&address.storage);
    ::inet_ntop(AF_INET, &a->sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(a->sin_port));
  }
  return "an unknown address";
}

std::string to_text(const Endpoint& endpoint) { return to_text(to_socket_address(endpoint, 0)); }

SocketAddress remote_address_of(int fd) {
  SocketAddress a;
  a.size = sizeof a.storage;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&a.storage), &a.size) != 0) a = {};
  return a;
}

bool is_same_host(const SocketAddress& a, const SocketAddress& b) {
  if (a.storage.ss_family != b.storage.ss_family) return false;
  if (a.storage.ss_family == AF_INET6) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(&a.storage)->sin6_addr,
                       &reinterpret_cast<const sockaddr_in6*>(&b.storage)->sin6_addr,
                       sizeof(in6_addr)) == 0;
  }
  return reinterpret_cast<const sockaddr_in*>(&a.storage)->sin_addr.s_addr ==
         reinterpret_cast<const sockaddr_in*>(&b.storage)->sin_addr.s_addr;
}

Result<Fd> listen_on(const NicAddress& nic, Endpoint* endpoint, const std::string& congestion) {
  Result<Endpoint> local = to_endpoint(nic);
  if (!local) return local.status();
  const SocketAddress address = to_socket_address(*local, nic.scope_id);
  Result<Fd> fd = tcp_socket(address.storage.ss_family);
  if (!fd) return fd;
  choose_congestion_control(fd->get(), congestion);
  if (::bind(fd->get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      ::listen(fd->get(), SOMAXCONN) != 0) {
    return system_error("cannot listen on " + nic.address + " of interface " + nic.interface +
                        ": " + errno_text(errno));
  }
  SocketAddress bound;
  bound.size = sizeof bound.storage;
  if (::getsockname(fd->get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size) != 0) {
    return system_error("cannot read the port of a listening socket: " + errno_text(errno));
  }
  *endpoint = *local;
  endpoint->port = ntohs(nic.is_ipv6 ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                                     : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
  return fd;
}

Result<Fd> start_connect(const SocketAddress& to, const NicAddress* from,
                         const std::string& congestion) {
  Result<Fd> fd = tcp_socket(to.storage.ss_family);
  if (!fd) return fd;
  tune(fd->get());
  choose_congestion_control(fd->get(), congestion);
  if (from != nullptr) leave_from(fd->get(), *from);
  if (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0 &&
      errno != EINPROGRESS) {
    return remote_error("cannot connect to " + to_text(to) + ": " + errno_text(errno));
  }
  return fd;
}

Status connect_outcome(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return remote_error(errno_text(error));
  return Status::ok();
}

bool retry_within(int fd, std::uint64_t peer_timeout_ns) {
  const std::uint64_t ms =
      std::clamp(peer_timeout_ns / 8 / 1'000'000, kLeastRtoMaxMs, kMostRtoMaxMs);
  return set_option(fd, IPPROTO_TCP, kRtoMax, static_cast<int>(ms));
}

// Linux keeps the time to live of the segment that ended the handshake (tcp_v4_syn_recv_sock(),
// tcp_v6_syn_recv_sock()) and gives it out as if it had come with a datagram.
int hops_of(int fd) {
  sockaddr_storage self{};
  socklen_t self_size = sizeof self;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&self), &self_size) != 0) return -1;
  const bool is_ipv6 = self.ss_family == AF_INET6;
  const int level = is_ipv6 ? SOL_IPV6 : SOL_IP;
  set_option(fd, level, is_ipv6 ? IPV6_RECVHOPLIMIT : IP_RECVTTL, 1);
  alignas(cmsghdr) std::array<std::byte, 256> buffer{};
  msghdr message{};
  message.msg_control = buffer.data();
  socklen_t size = buffer.size();
  const int asked = is_ipv6 ? IPV6_2292PKTOPTIONS : IP_PKTOPTIONS;
  if (::getsockopt(fd, level, asked, buffer.data(), &size) != 0) return -1;
  message.msg_controllen = size;
  for (cmsghdr* m = CMSG_FIRSTHDR(&message); m != nullptr; m = CMSG_NXTHDR(&message, m)) {
    if (m->cmsg_level != level || m->cmsg_type != (is_ipv6 ? IPV6_HOPLIMIT : IP_TTL)) continue;
    int left = 0;
    std::memcpy(&left, CMSG_DATA(m), sizeof left);
    for (const int begin : {64, 128, 255}) {  // what systems send with
      if (left > 0 && left <= begin) return begin - left;
    }
  }
  return -1;
}

Fd accept_from(int listener, int* error, SocketAddress* from) {
  SocketAddress unasked;
  SocketAddress& peer = from != nullptr ? *from : unasked;
  peer.size = sizeof peer.storage;
  Fd fd = Fd::make([&] {
    return ::accept4(listener, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
  });
  *error = fd.is_open() ? 0 : errno;
  if (fd.is_open()) tune(fd.get());
  return fd;
}

}  // namespace riffle
