#include "plugin/transport/tcp_account.h"

// The kernel's own header: the C library's tcp_info ends before these fields.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace riffle {

TcpAccount tcp_account(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {info.tcpi_busy_time, info.tcpi_total_retrans, info.tcpi_rtt};
}

}  // namespace riffle
