#include "tools/doctor/kernel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include <string>

#include "plugin/transport/reactor/congestion.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle::tools {
namespace {

constexpr int kRtoMinUs = 45;  // TCP_RTO_MIN_US, Linux 6.15
constexpr int kShortUs = 20'000;

std::string congestion_of(int fd) {
  char name[16] = {};
  socklen_t size = sizeof name - 1;
  return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0 ? name : "unknown";
}

}  // namespace

void check_kernel(const Config& config, Verdicts* verdicts) {
  utsname kernel{};
  uname(&kernel);
  const Fd fd = Fd::make([] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); });
  const std::string systems = congestion_of(fd.get());
  choose_congestion_control(fd.get(), config.congestion);
  const std::string ours = congestion_of(fd.get());
  verdicts->good(std::string(kernel.sysname) + " " + kernel.release + ", TCP congestion control " +
                 ours + (ours == systems ? "" : " (the system's is " + systems + ")"));
  if (setsockopt(fd.get(), IPPROTO_TCP, kRtoMinUs, &kShortUs, sizeof kShortUs) != 0) {
    verdicts->note(
        "this kernel sends a lost packet that no later one tells of again after 200 ms; Linux "
        "6.15 and later let a job ask for 8");
  }
}

}  // namespace riffle::tools
