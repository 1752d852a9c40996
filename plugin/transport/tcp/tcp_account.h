// What the kernel has counted for the sending side of one TCP connection (TCP_INFO, Linux 4.10 and
// later): it costs nothing until asked.
#pragma once

#include <cstdint>
#include <optional>

namespace riffle {

struct TcpAccount {
  std::uint64_t delivered_bytes = 0;  // acknowledged by the peer's kernel
  std::uint64_t busy_us = 0;          // data was sent and not acknowledged, or waiting to be sent
  std::uint64_t unread_us = 0;        // of that: the receiving process did not read
  std::uint64_t retransmits = 0;      // segments
  std::uint32_t rtt_us = 0;           // smoothed
};

// None where the kernel does not say, or the socket is gone.
std::optional<TcpAccount> tcp_account(int socket);

}  // namespace riffle
