#include "plugin/transport/reactor/congestion.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "plugin/config/log.h"

namespace riffle {
namespace {

bool set(int fd, const std::string& name) {
  return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.c_str(),
                      static_cast<socklen_t>(name.size())) == 0;
}

bool system_uses_bbr(int fd) {
  std::array<char, 16> name{};
  socklen_t size = name.size() - 1;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return false;
  return std::strncmp(name.data(), "bbr", 3) == 0;
}

}  // namespace

void choose_congestion_control(int fd, const std::string& wanted) {
  if (wanted == "system") return;
  if (wanted == "auto") {
    // Unprivileged processes may always choose reno; cubic where the administrator allows it.
    if (system_uses_bbr(fd) && !set(fd, "cubic")) set(fd, "reno");
    return;
  }
  static std::atomic<bool> said{false};
  if (!set(fd, wanted) && !said.exchange(true)) {
    log_warn(
        "RIFFLE_CONGESTION={}: {}; the system's congestion control stays (accepted: "
        "auto, system, or a name from /proc/sys/net/ipv4/tcp_allowed_congestion_control)",
        wanted, std::strerror(errno));
  }
}

}  // namespace riffle
