// riffle_net_bench: what NET makes of a path compared with a bare send/recv loop on the same path.
//
// Two processes, one direction, 8 slots of 4 MiB kept in flight as NCCL's proxy does. The bare loop
// moves the same slots over the same number of TCP connections with blocking calls, one thread per
// side, under the same congestion control. Both take turns; the medians are compared.
//
//   riffle_net_bench [--rounds N] [--mib N] [--netns SENDER,RECEIVER]
//
// Without --netns both processes use loopback; with it each first enters the network namespace at
// that path (for example /run/netns/a,/run/netns/b) and uses what RIFFLE_SOCKET_IFNAME allows
// there.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugin/entry/options.h"
#include "plugin/net/net_service.h"
#include "plugin/transport/device/device.h"
#include "plugin/transport/handshake/stream_set.h"
#include "plugin/transport/reactor/congestion.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle {
namespace {

constexpr std::size_t kSlots = 8;
constexpr std::size_t kSlotBytes = 4 << 20;

struct Sample {
  double mbytes_per_s = 0;
  double cpu_s_per_gbyte = 0;  // of this process
};

[[noreturn]] void give_up(const std::string& what) { throw std::runtime_error(what); }

void exchange_out(int pipe, const void* data, std::size_t size) {
  if (::send(pipe, data, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) give_up("pipe broke");
}
void exchange_in(int pipe, void* data, std::size_t size) {
  if (::recv(pipe, data, size, MSG_WAITALL) != static_cast<ssize_t>(size)) give_up("pipe broke");
}

double cpu_seconds() {
  rusage u;
  ::getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

// Time and CPU of a phase of `slots` slots.
class Meter {
 public:
  Sample stop(std::size_t slots) const {
    const double bytes = static_cast<double>(slots) * kSlotBytes;
    const double wall_s = static_cast<double>(Reactor::now_ns() - start_ns_) / 1e9;
    return {bytes / wall_s / 1e6, (cpu_seconds() - start_cpu_s_) / (bytes / 1e9)};
  }

 private:
  const std::uint64_t start_ns_ = Reactor::now_ns();
  const double start_cpu_s_ = cpu_seconds();
};

using Memory = std::vector<std::vector<char>>;
Memory make_memory() { return Memory(kSlots, std::vector<char>(kSlotBytes, 'r')); }

// As many as NET uses.
std::size_t flows() {
  return static_cast<std::size_t>(streams_to_each_of(1, options_from(config()).transport.streams));
}

// ---- the bare loop ----

class BareFlows {
 public:
  // The receiver listens on the address that NET uses as well.
  static BareFlows accept(int pipe, std::size_t flows) {
    const auto& found = devices(options_from(config()).transport.devices);
    if (!found) give_up(found.status().message());
    const NicAddress& nic = (*found)[0].addresses[0];
    if (nic.is_ipv6) give_up("this benchmark compares over IPv4 only: RIFFLE_SOCKET_FAMILY=ipv4");
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, nic.address.c_str(), &address.sin_addr);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener, generic, size) != 0 || ::listen(listener, 64) != 0) give_up("listen");
    ::getsockname(listener, generic, &size);
    exchange_out(pipe, &address, sizeof address);
    BareFlows self;
    for (std::size_t i = 0; i < flows; ++i) self.add(::accept(listener, nullptr, nullptr));
    ::close(listener);
    return self;
  }
  static BareFlows connect(int pipe, std::size_t flows) {
    sockaddr_in address;
    exchange_in(pipe, &address, sizeof address);
    BareFlows self;
    for (std::size_t i = 0; i < flows; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        give_up("connect");
      }
      self.add(fd);
    }
    return self;
  }
  ~BareFlows() {
    for (const int fd : fds_) ::close(fd);
  }
  BareFlows(BareFlows&& other) = default;

  void send(Memory& memory, std::size_t slots) {
    for (std::size_t s = 0; s < slots; ++s) {
      const auto& slot = memory[s % kSlots];
      for (std::size_t at = 0; at < kSlotBytes;) {
        const ssize_t n = ::send(fds_[s % fds_.size()], &slot[at], kSlotBytes - at, MSG_NOSIGNAL);
        if (n <= 0) give_up("send");
        at += static_cast<std::size_t>(n);
      }
    }
    char done;
    if (::recv(fds_[0], &done, 1, MSG_WAITALL) != 1) give_up("recv");
  }
  void receive(Memory& memory, std::size_t slots) {
    for (std::size_t s = 0; s < slots; ++s) {
      auto& slot = memory[s % kSlots];
      if (::recv(fds_[s % fds_.size()], slot.data(), kSlotBytes, MSG_WAITALL) != kSlotBytes) {
        give_up("recv");
      }
    }
    if (::send(fds_[0], "d", 1, MSG_NOSIGNAL) != 1) give_up("send");
  }

 private:
  BareFlows() = default;
  void add(int fd) {
    const int on = 1;
    if (fd < 0) give_up("socket");
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // As NET's flows: BBR, where it is the system's choice, paces a flow over veth to half its
    // speed.
    choose_congestion_control(fd, options_from(config()).transport.congestion);
    fds_.push_back(fd);
  }
  std::vector<int> fds_;
};

// ---- NET ----

template <class T>
T checked(Result<T> result) {
  if (!result) give_up(result.status().message());
  return *result;
}

// Keeps up to kSlots requests in flight until `slots` are done. `start(slot)` begins one.
template <class Start>
void keep_in_flight(std::size_t slots, Start start) {
  std::array<net::Request*, kSlots> flying{};
  std::size_t begun = 0, done = 0;
  while (done < slots) {
    while (begun < slots && begun < done + kSlots) {
      net::Request* const request = checked(start(begun % kSlots));
      if (request == nullptr) break;
      flying[begun++ % kSlots] = request;
    }
    if (checked(net::test(flying[done % kSlots], nullptr))) {
      ++done;
    } else {
      ::sched_yield();  // as NCCL's proxy does when there is nothing to do
    }
  }
}

struct Plan {
  std::size_t rounds = 5;
  std::size_t slots = 256;  // per round
  std::array<std::string, 2> namespaces;
};

using Samples = std::vector<Sample>;

void run_sender(int pipe, const Plan& plan) {
  Memory memory = make_memory();
  BareFlows bare = BareFlows::connect(pipe, flows());
  Handle handle;
  exchange_in(pipe, handle.bytes.data(), handle.bytes.size());
  net::SendConnection* connection = nullptr;
  while ((connection = checked(net::connect(options_from(config()).transport,
                                            options_from(config()).net, 0, &handle))) == nullptr)
    ::usleep(100);
  for (std::size_t round = 0; round < plan.rounds; ++round) {
    bare.send(memory, plan.slots);
    keep_in_flight(plan.slots, [&](std::size_t s) {
      return net::isend(connection, memory[s].data(), kSlotBytes, 0);
    });
    char done;
    exchange_in(pipe, &done, 1);
  }
  net::close(connection);
}

void run_receiver(int pipe, const Plan& plan, Samples* bare_samples, Samples* net_samples) {
  Memory memory = make_memory();
  BareFlows bare = BareFlows::accept(pipe, flows());
  Handle handle;
  net::Listener* const listener =
      checked(net::listen(options_from(config()).transport, 0, 0, &handle));
  exchange_out(pipe, handle.bytes.data(), handle.bytes.size());
  net::RecvConnection* connection = nullptr;
  while ((connection = checked(net::accept(listener))) == nullptr) ::usleep(100);
  for (std::size_t round = 0; round < plan.rounds; ++round) {
    const Meter bare_meter;
    bare.receive(memory, plan.slots);
    bare_samples->push_back(bare_meter.stop(plan.slots));
    const Meter net_meter;
    keep_in_flight(plan.slots, [&](std::size_t s) {
      void* const data = memory[s].data();
      const std::size_t size = kSlotBytes;
      const int tag = 0;
      return net::irecv(connection, {&data, 1}, {&size, 1}, {&tag, 1});
    });
    net_samples->push_back(net_meter.stop(plan.slots));
    exchange_out(pipe, "d", 1);
  }
  net::close(connection);
  net::close(listener);
}

Sample median(Samples samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.mbytes_per_s < b.mbytes_per_s; });
  return samples[samples.size() / 2];
}

void enter_namespace(const std::string& path) {
  if (path.empty()) return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) give_up("cannot enter namespace " + path);
  ::close(fd);
}

Plan parse(int argc, char** argv) {
  Plan plan;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--rounds") {
      plan.rounds = std::max(1ul, std::stoul(value));
    } else if (option == "--mib") {
      plan.slots = std::max<std::size_t>(kSlots, (std::stoul(value) << 20) / kSlotBytes);
    } else if (option == "--netns" && value.find(',') != std::string::npos) {
      plan.namespaces = {value.substr(0, value.find(',')), value.substr(value.find(',') + 1)};
    } else {
      give_up("usage: riffle_net_bench [--rounds N] [--mib N] [--netns SENDER,RECEIVER]");
    }
  }
  if (plan.namespaces[0].empty()) ::setenv("RIFFLE_SOCKET_IFNAME", "=lo", 0);
  return plan;
}

int run(int argc, char** argv) {
  const Plan plan = parse(argc, argv);
  int pipe[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pipe) != 0) give_up("socketpair");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[1]);
    enter_namespace(plan.namespaces[0]);
    run_sender(pipe[0], plan);
    return 0;
  }
  ::close(pipe[0]);
  enter_namespace(plan.namespaces[1]);
  Samples bare_samples, net_samples;
  run_receiver(pipe[1], plan, &bare_samples, &net_samples);
  int status = 0;
  ::waitpid(child, &status, 0);
  const Sample bare = median(bare_samples), net = median(net_samples);
  std::printf("%-28s %10s %18s\n", "", "MB/s", "receiver CPU s/GB");
  std::printf("%-28s %10.0f %18.3f\n", "bare send/recv loop", bare.mbytes_per_s,
              bare.cpu_s_per_gbyte);
  std::printf("%-28s %10.0f %18.3f\n", "riffle NET", net.mbytes_per_s, net.cpu_s_per_gbyte);
  std::printf("%-28s %9.1f%%   (%zu rounds of %zu MiB, %lld flows, slots of 4 MiB)\n", "ratio",
              100 * net.mbytes_per_s / bare.mbytes_per_s, plan.rounds,
              plan.slots * kSlotBytes >> 20, static_cast<long long>(flows()));
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  try {
    return riffle::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "riffle_net_bench: %s\n", e.what());
    return 1;
  }
}
