#include "plugin/transport/tcp/tcp_account.h"

// The kernel's own header: the C library's tcp_info ends before these fields.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace riffle {

std::optional<WireAccount> tcp_account(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_sndbuf_limited)) return std::nullopt;  // an older kernel
  return WireAccount{info.tcpi_bytes_acked, info.tcpi_busy_time, info.tcpi_rwnd_limited,
                     info.tcpi_total_retrans, info.tcpi_rtt};
}

}  // namespace riffle
