#include "lab/cluster/background.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "lab/cluster/network.h"

namespace riffle::cluster {
namespace {

constexpr std::uint16_t kFirstPort = 7012;
// One call sends as many datagrams of an Ethernet frame each as the rate is worth in 2 ms, at most
// kMostDatagrams: fewer calls cost less processor, and more would come as a burst.
constexpr int kPayload = 1472, kOnTheWire = 1514, kMostDatagrams = 10;
constexpr std::int64_t kTickNs = 2'000'000;
constexpr std::int64_t kMillisecondNs = 1'000'000, kSecondNs = 1'000'000'000;

sockaddr_in endpoint(int node, std::size_t flow) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<std::uint16_t>(kFirstPort + flow));
  inet_pton(AF_INET, address_of(node).c_str(), &a.sin_addr);
  return a;
}

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecondNs + t.tv_nsec;
}

void sleep_until(std::int64_t ns) {
  const timespec t{ns / kSecondNs, ns % kSecondNs};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0) {
  }
}

// A socket that is never read from: without it every datagram would be answered with an error.
[[noreturn]] void take_datagrams(int self, std::size_t flow) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const int least = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  const sockaddr_in at = endpoint(self, flow);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) _exit(1);
  while (true) pause();
}

[[noreturn]] void send_datagrams(const BackgroundFlow& f, std::size_t flow) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const sockaddr_in to = endpoint(f.to, flow);
  const int segment = kPayload;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      setsockopt(fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0) {
    _exit(1);
  }
  static const std::array<char, kMostDatagrams * kPayload> zeros{};
  const std::int64_t datagram_ns = kOnTheWire * 8 * kMillisecondNs / f.rate_kbps;
  const std::int64_t count = std::clamp<std::int64_t>(kTickNs / datagram_ns, 1, kMostDatagrams);
  const std::int64_t on_ns = f.on_ms * kMillisecondNs, off_ns = f.off_ms * kMillisecondNs;
  std::int64_t next = now_ns(), end = next + on_ns;
  while (true) {
    // An error is a full queue, or a peer that is not there yet: both are a datagram lost.
    (void)send(fd, zeros.data(), static_cast<std::size_t>(count * kPayload), MSG_DONTWAIT);
    next += count * datagram_ns;
    if (off_ns != 0 && next >= end) {
      next = std::max(next, end + off_ns);
      end = next + on_ns;
    }
    // What a busy machine delayed for long is not caught up with.
    next = std::max(next, now_ns() - 100 * kMillisecondNs);
    sleep_until(next);
  }
}

}  // namespace

Status BackgroundTraffic::start(const std::vector<BackgroundFlow>& flows, const Enter& enter) {
  const pid_t owner = getpid();
  const auto as_process_of = [&](int node, const auto& what) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != owner || !enter(node)) _exit(1);
      what();
    }
    if (pid > 0) processes_.push_back(pid);
    return pid > 0;
  };
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const BackgroundFlow& f = flows[i];
    if (!as_process_of(f.to, [&] { take_datagrams(f.to, i); }) ||
        !as_process_of(f.from, [&] { send_datagrams(f, i); })) {
      return system_error("cannot start the background flows' processes");
    }
  }
  return Status::ok();
}

BackgroundTraffic::~BackgroundTraffic() {
  for (const pid_t pid : processes_) kill(pid, SIGKILL);
  for (const pid_t pid : processes_) waitpid(pid, nullptr, 0);
}

}  // namespace riffle::cluster
