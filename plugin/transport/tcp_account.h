// What the kernel has counted for one TCP connection: it costs nothing until asked.
#pragma once

#include <cstdint>

namespace riffle {

struct TcpAccount {
  std::uint64_t busy_us = 0;      // data was sent and not acknowledged, or waiting to be sent
  std::uint64_t retransmits = 0;  // segments
  std::uint32_t rtt_us = 0;       // smoothed
};

// All zero where the kernel does not say (before Linux 4.10) or the socket is gone.
TcpAccount tcp_account(int socket);

}  // namespace riffle
