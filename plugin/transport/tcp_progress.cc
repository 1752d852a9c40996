#include "plugin/transport/tcp_progress.h"

#include <linux/tcp.h>  // its tcp_info has more than glibc's
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

namespace riffle {

TcpProgress tcp_progress_of(int fd, const TcpProgress& before) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return before;
  if (size < offsetof(tcp_info, tcpi_sndbuf_limited)) return before;
  const std::uint64_t busy_us =
      info.tcpi_busy_time - std::min(info.tcpi_busy_time, info.tcpi_rwnd_limited);
  return {std::max<std::uint64_t>(before.delivered_bytes, info.tcpi_bytes_acked),
          std::max<std::uint64_t>(before.busy_ns, busy_us * 1000)};
}

}  // namespace riffle
