// What travels between a rank and the launcher's hub. Both ends are the same program on the same
// machine, so a plain struct is the format.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace riffle::host {

inline constexpr int kRanksMax = 1024;
inline constexpr std::uint64_t kBlobBytesMax = 64u << 20;

enum class WireKind : std::uint32_t { kGather, kNote, kReply, kPeerGone };

struct WireHeader {
  WireKind kind;
  std::int32_t peer = -1;     // kPeerGone: the rank that is gone
  std::uint64_t bytes = 0;    // payload that follows the header (and the members)
  std::uint32_t members = 0;  // kGather: number of int32 global ranks that follow the header
};

// Moves exactly `bytes`, waiting for the socket at most until the deadline. False: closed or too
// late.
template <bool kWrite>
bool transfer_all(int fd, void* data, std::size_t bytes,
                  std::chrono::steady_clock::time_point deadline) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t n = kWrite ? send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                             : recv(fd, at, bytes, MSG_DONTWAIT);
    if (n > 0) {
      at += n;
      bytes -= static_cast<std::size_t>(n);
      continue;
    }
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd p{fd, kWrite ? short{POLLOUT} : short{POLLIN}, 0};
    poll(&p, 1, static_cast<int>(left.count()));
  }
  return true;
}

}  // namespace riffle::host
