// What the kernel knows of a TCP connection's sending: TCP_INFO (Linux 4.10 and later).
#pragma once

#include <cstdint>

namespace riffle {

struct TcpProgress {
  std::uint64_t delivered_bytes = 0;  // acknowledged by the peer's kernel
  // How long there was something unacknowledged, without the time in which the receiving process
  // did not read.
  std::uint64_t busy_ns = 0;
};

// `before` if the kernel does not tell; never goes backwards.
TcpProgress tcp_progress_of(int fd, const TcpProgress& before);

}  // namespace riffle
