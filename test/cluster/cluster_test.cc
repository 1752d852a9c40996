// Emulated clusters are what they say (names, rates, counters) and leave nothing behind.
#include "lab/cluster/cluster.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>

#include "lab/cluster/congestion.h"
#include "lab/cluster/network.h"

namespace riffle::cluster::cluster_test {
namespace {

using Clock = std::chrono::steady_clock;

class ClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
  }
};

// Runs `body` on a node in a child; it writes its answer to the descriptor it is given.
std::pair<pid_t, int> run_on(const Cluster& cluster, int node,
                             const std::function<int(int out)>& body) {
  int fds[2];
  EXPECT_EQ(pipe(fds), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(30);
    close(fds[0]);
    _exit(cluster.enter(node) ? body(fds[1]) : 99);
  }
  close(fds[1]);
  return {pid, fds[0]};
}

template <class T>
T answer_of(std::pair<pid_t, int> child) {
  T answer{};
  EXPECT_EQ(read(child.second, &answer, sizeof answer), static_cast<ssize_t>(sizeof answer));
  close(child.second);
  int status = 0;
  waitpid(child.first, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  return answer;
}

sockaddr_in endpoint(int node) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(4711);
  inet_pton(AF_INET, address_of(node).c_str(), &a.sin_addr);
  return a;
}

// Takes `bytes` from one connection; the seconds from the first byte to the last.
int receive(int out, int node, std::size_t bytes) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in self = endpoint(node);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0) return 2;
  listen(listener, 1);
  const int fd = accept(listener, nullptr, nullptr);
  std::vector<char> buffer(1 << 18);
  std::size_t got = 0;
  Clock::time_point start;
  while (got < bytes) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n <= 0) return 3;
    if (got == 0) start = Clock::now();
    got += static_cast<std::size_t>(n);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return write(out, &seconds, sizeof seconds) == sizeof seconds ? 0 : 4;
}

int send_all(int out, int to, std::size_t bytes) {
  const sockaddr_in peer = endpoint(to);
  int fd = -1;
  for (int tries = 0; tries < 200; ++tries) {
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0) break;
    close(fd);
    usleep(20000);
  }
  const std::vector<char> data(1 << 18);
  for (std::size_t sent = 0; sent < bytes;) {
    const ssize_t n = write(fd, data.data(), std::min(data.size(), bytes - sent));
    if (n <= 0) return 2;
    sent += static_cast<std::size_t>(n);
  }
  const double done = 1;
  return write(out, &done, sizeof done) == sizeof done ? 0 : 3;
}

// Payload of a bare TCP loop from one node to another as a share of what a link of `kbps` allows.
double share_of_rate(const Cluster& cluster, int from, int to, std::int64_t kbps,
                     std::size_t bytes) {
  const auto receiver = run_on(cluster, to, [&](int out) { return receive(out, to, bytes); });
  const auto sender = run_on(cluster, from, [&](int out) { return send_all(out, to, bytes); });
  const double seconds = answer_of<double>(receiver);
  answer_of<double>(sender);
  const double ideal = static_cast<double>(kbps) * 1000 / 8 * kPayloadBytes / kFrameBytes;
  const double share = static_cast<double>(bytes) / seconds / ideal;
  std::printf("node%d -> node%d: %.4f of the payload rate of %lld Mbit/s\n", from, to, share,
              static_cast<long long>(kbps / 1000));
  return share;
}

Profile small_racks() {
  Profile profile = even_profile(4, 120'000);
  profile.racks = {{"left", {60'000, 60'000}}, {"right", {60'000, 60'000}}};
  profile.rack_of = {0, 0, 1, 1};
  profile.rates[1] = {40'000, 40'000};
  return profile;
}

// Racks {0, 1}, {2, 3} and {4, 5} in a pod, {6, 7} beside it.
Profile two_tiers() {
  Profile profile = even_profile(8, 120'000);
  profile.rates[0] = {60'000, 120'000};
  profile.racks = {{"a", {}, 0}, {"b", {80'000, 90'000}, 0}, {"c", {}, 0}, {"d", {}}};
  profile.rack_of = {0, 0, 1, 1, 2, 2, 3, 3};
  profile.pods = {{"pod", {40'000, 50'000}}};
  return profile;
}

TEST_F(ClusterTest, NodesHaveTheirNames) {
  const auto cluster = Cluster::create(even_profile(3, 0));
  ASSERT_TRUE(cluster) << cluster.status().message();
  for (int n = 0; n < 3; ++n) {
    const auto name = answer_of<std::array<char, 8>>(run_on(*cluster.value(), n, [](int out) {
      std::array<char, 8> name{};
      gethostname(name.data(), name.size());
      return write(out, name.data(), name.size()) == 8 ? 0 : 1;
    }));
    EXPECT_EQ(std::string(name.data()), "node" + std::to_string(n));
  }
}

TEST_F(ClusterTest, RatesAreWithinThreePercent) {
  const auto cluster = Cluster::create(small_racks());
  ASSERT_TRUE(cluster) << cluster.status().message();
  constexpr std::size_t kBytes = 8 << 20;
  EXPECT_NEAR(share_of_rate(*cluster.value(), 2, 3, 120'000, kBytes), 1.0, 0.03);  // a node's link
  EXPECT_NEAR(share_of_rate(*cluster.value(), 0, 1, 40'000, kBytes), 1.0, 0.03);   // slow receiver
  EXPECT_NEAR(share_of_rate(*cluster.value(), 1, 0, 40'000, kBytes), 1.0, 0.03);   // slow sender
  EXPECT_NEAR(share_of_rate(*cluster.value(), 0, 2, 60'000, kBytes), 1.0, 0.03);   // an uplink
}

TEST_F(ClusterTest, ShapersKeepTheRatesOfBothDirectionsAndTiers) {
  constexpr std::size_t kBytes = 4 << 20;
  for (const Shaper shaper : {Shaper::kTbf, Shaper::kHtb}) {
    Profile profile = two_tiers();
    profile.shaping.shaper = shaper;
    profile.shaping.gso_max_bytes = 65'536;
    profile.packet_filter = shaper == Shaper::kHtb;  // whatever the other one has
    const auto cluster = Cluster::create(profile);
    ASSERT_TRUE(cluster) << cluster.status().message();
    SCOPED_TRACE(static_cast<int>(shaper));
    const auto expect_rate = [&](int from, int to, std::int64_t kbps) {
      EXPECT_NEAR(share_of_rate(*cluster.value(), from, to, kbps, kBytes), 1.0, 0.04);
    };
    expect_rate(0, 1, 60'000);   // what node 0 may send
    expect_rate(1, 0, 120'000);  // ... and receive
    expect_rate(2, 4, 80'000);   // out of a rack, within its pod
    expect_rate(2, 6, 40'000);   // out of the pod
    expect_rate(6, 2, 50'000);   // into it
  }
}

// Of a socket that connects and of one that is accepted, both of which asked for another one.
std::string congestion_of(int fd) {
  char name[16] = {};
  socklen_t size = sizeof name;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0 ? name : "unknown";
}

TEST_F(ClusterTest, EverySocketHasTheCongestionControlOfAll) {
  Profile profile = even_profile(2, 0);
  for (const std::string name : {"cubic", "bbr"}) {
    profile.congestion = name;
    const auto cluster = Cluster::create(profile);
    if (name == "bbr" && !cluster) continue;  // a kernel may lack it
    ASSERT_TRUE(cluster) << cluster.status().message();
    const auto accepts = run_on(**cluster, 1, [](int out) {
      const int listener = socket(AF_INET, SOCK_STREAM, 0);
      const sockaddr_in self = endpoint(1);
      if (bind(listener, reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0) return 2;
      listen(listener, 1);
      const char first = congestion_of(accept(listener, nullptr, nullptr))[0];
      return write(out, &first, 1) == 1 ? 0 : 3;
    });
    const auto connects = run_on(**cluster, 0, [](int out) {
      const sockaddr_in peer = endpoint(1);
      for (int tries = 0; tries < 200; ++tries) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
        if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0) {
          const char first = congestion_of(fd)[0];
          return write(out, &first, 1) == 1 ? 0 : 3;
        }
        close(fd);
        usleep(20000);
      }
      return 2;
    });
    EXPECT_EQ(answer_of<char>(accepts), name[0]);
    EXPECT_EQ(answer_of<char>(connects), name[0]);
  }
}

// Of a socket on which nothing was set: microseconds.
std::uint32_t timeout_of(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_rto : 0;
}

TEST_F(ClusterTest, EverySocketHasTheTimeoutOfAll) {
  Profile profile = even_profile(2, 0);
  profile.congestion = "cubic";
  const auto cluster = Cluster::create(profile);
  ASSERT_TRUE(cluster) << cluster.status().message();
  const auto accepts = run_on(**cluster, 1, [](int out) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in self = endpoint(1);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&self), sizeof self) != 0) return 2;
    listen(listener, 1);
    const std::uint32_t timeout = timeout_of(accept(listener, nullptr, nullptr));
    return write(out, &timeout, sizeof timeout) == ssize_t{sizeof timeout} ? 0 : 3;
  });
  const auto connects = run_on(**cluster, 0, [](int out) {
    const sockaddr_in peer = endpoint(1);
    for (int tries = 0; tries < 200; ++tries) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) == 0) {
        const std::uint32_t timeout = timeout_of(fd);
        return write(out, &timeout, sizeof timeout) == ssize_t{sizeof timeout} ? 0 : 3;
      }
      close(fd);
      usleep(20000);
    }
    return 2;
  });
  for (const auto& child : {accepts, connects}) {
    const auto timeout = answer_of<std::uint32_t>(child);
    EXPECT_GE(timeout, 1000u * kRtoMinMs);
    EXPECT_LT(timeout, 100'000u);  // the kernel's own is 200 ms and the round trip
  }
}

TEST_F(ClusterTest, AnUnknownCongestionControlIsRefused) {
  Profile profile = even_profile(2, 0);
  profile.congestion = "pigeons";
  const auto cluster = Cluster::create(profile);
  ASSERT_FALSE(cluster);
  EXPECT_NE(cluster.status().message().find("cubic"), std::string::npos)
      << cluster.status().message();
}

TEST_F(ClusterTest, EqualHostNamesAreEqual) {
  Profile profile = even_profile(2, 0);
  profile.equal_host_names = true;
  const auto cluster = Cluster::create(profile);
  ASSERT_TRUE(cluster) << cluster.status().message();
  for (int n = 0; n < 2; ++n) {
    const auto name = cluster.value()->run(n, {"hostname"}, 5000);
    ASSERT_TRUE(name) << name.status().message();
    EXPECT_EQ(*name, "node\n");
  }
}

TEST_F(ClusterTest, EveryNicHasItsOwnRateAndAddress) {
  Profile profile = even_profile(2, 60'000);
  profile.nics = 2;
  const auto cluster = Cluster::create(profile);
  ASSERT_TRUE(cluster) << cluster.status().message();
  const auto addresses = cluster.value()->run(1, {"ip", "-brief", "-4", "address"}, 5000);
  ASSERT_TRUE(addresses) << addresses.status().message();
  EXPECT_NE(addresses->find("10.77.0.2/24"), std::string::npos) << *addresses;
  EXPECT_NE(addresses->find("10.77.1.2/24"), std::string::npos) << *addresses;
  const auto shaped = cluster.value()->run(1, {"tc", "qdisc", "show", "dev", "eth1"}, 5000);
  ASSERT_TRUE(shaped) << shaped.status().message();
  EXPECT_NE(shaped->find("tbf"), std::string::npos) << *shaped;
  EXPECT_NE(shaped->find("60Mbit"), std::string::npos) << *shaped;
}

double received_kbps(const Cluster& cluster, int node, int ms) {
  const auto before = cluster.wire_bytes(node);
  usleep(static_cast<useconds_t>(ms) * 1000);
  const auto after = cluster.wire_bytes(node);
  EXPECT_TRUE(before && after);
  return static_cast<double>(after->received - before->received) * 8 / ms;
}

TEST_F(ClusterTest, BackgroundFlowsTakeTheirRate) {
  Profile profile = even_profile(4, 100'000);
  profile.flows = {{.from = 0, .to = 1, .rate_kbps = 20'000},
                   {.from = 2, .to = 3, .rate_kbps = 20'000, .on_ms = 200, .off_ms = 200}};
  const auto cluster = Cluster::create(profile);
  ASSERT_TRUE(cluster) << cluster.status().message();
  usleep(300'000);  // until it is on its way
  EXPECT_NEAR(received_kbps(*cluster.value(), 1, 1200), 20'000, 1500);
  EXPECT_NEAR(received_kbps(*cluster.value(), 3, 1200), 10'000, 2000);
  // TCP has the rest.
  EXPECT_NEAR(share_of_rate(*cluster.value(), 0, 1, 80'000, 8 << 20), 1.0, 0.05);
}

// What does not back off gets exactly what a policer lets pass; how TCP fares is TCP's matter.
TEST_F(ClusterTest, PolicersPassTheirRate) {
  Profile profile = two_tiers();
  profile.shaping.shaper = Shaper::kPolicer;
  profile.shaping.burst_bytes = 500'000;  // a busy machine is late with packets
  profile.flows = {{.from = 0, .to = 1, .rate_kbps = 100'000},
                   {.from = 2, .to = 6, .rate_kbps = 100'000},
                   {.from = 7, .to = 5, .rate_kbps = 100'000}};
  const auto cluster = Cluster::create(profile);
  ASSERT_TRUE(cluster) << cluster.status().message();
  usleep(300'000);  // until the buckets are empty
  EXPECT_NEAR(received_kbps(*cluster.value(), 1, 800), 60'000, 4000);  // what node 0 may send
  EXPECT_NEAR(received_kbps(*cluster.value(), 6, 800), 40'000, 3000);  // out of the pod
  EXPECT_NEAR(received_kbps(*cluster.value(), 5, 800), 50'000, 3500);  // into it
}

// How long a fixed piece of work takes as a process of that node, in ms of the clock.
double work_ms(const Cluster& cluster, int node) {
  return answer_of<double>(run_on(cluster, node, [](int out) {
    const auto start = Clock::now();
    timespec used{};
    while (used.tv_sec * 1'000'000'000 + used.tv_nsec < 200'000'000) {
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    }
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    return write(out, &ms, sizeof ms) == sizeof ms ? 0 : 1;
  }));
}

TEST_F(ClusterTest, ANodeWithLittleProcessorIsSlow) {
  Profile profile = even_profile(2, 0);
  profile.cpu_percent[1] = 20;
  std::string group;
  {
    const auto cluster = Cluster::create(profile);
    if (!cluster && cluster.status().message().find("cpu_percent needs") != std::string::npos) {
      GTEST_SKIP() << cluster.status().message();
    }
    ASSERT_TRUE(cluster) << cluster.status().message();
    EXPECT_EQ(cluster.value()->cpu_shares().procs_file(0), "");
    group = cluster.value()->cpu_shares().procs_file(1);
    EXPECT_EQ(access(group.c_str(), F_OK), 0);
    // 200 ms of a fifth of a processor: 1 s, less what the first periods lend.
    EXPECT_GT(work_ms(*cluster.value(), 1), 700);
  }
  EXPECT_NE(access(group.c_str(), F_OK), 0) << group << " was left behind";
}

TEST_F(ClusterTest, CountersCountTheWire) {
  const auto cluster = Cluster::create(even_profile(2, 0));
  ASSERT_TRUE(cluster) << cluster.status().message();
  constexpr std::size_t kBytes = 4 << 20;
  const auto before = cluster.value()->wire_bytes(0);
  ASSERT_TRUE(before) << before.status().message();
  const auto receiver =
      run_on(*cluster.value(), 1, [&](int out) { return receive(out, 1, kBytes); });
  answer_of<double>(run_on(*cluster.value(), 0, [&](int out) { return send_all(out, 1, kBytes); }));
  answer_of<double>(receiver);
  const auto after = cluster.value()->wire_bytes(0);
  ASSERT_TRUE(after);
  EXPECT_GE(after->sent - before->sent, static_cast<std::int64_t>(kBytes));
  EXPECT_LT(after->received - before->received, static_cast<std::int64_t>(kBytes / 4));
}

// Namespaces (by inode) that some process still is in.
std::set<ino_t> live_network_namespaces() {
  std::set<ino_t> live;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    struct stat info;
    const std::string path = std::string("/proc/") + entry->d_name + "/ns/net";
    if (stat(path.c_str(), &info) == 0) live.insert(info.st_ino);
  }
  closedir(proc);
  return live;
}

// A launcher in a child makes a cluster, tells its namespaces and then ends by `signal`.
void expect_nothing_left_after(int signal) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    close(fds[0]);
    const auto cluster = Cluster::create(even_profile(3, 10'000));
    if (!cluster) _exit(1);
    std::array<ino_t, 3> inodes{};
    for (std::size_t n = 0; n < inodes.size(); ++n) {
      struct stat info {};
      stat(("/proc/" + std::to_string(cluster.value()->holders()[n]) + "/ns/net").c_str(), &info);
      inodes[n] = info.st_ino;
    }
    if (write(fds[1], inodes.data(), sizeof inodes) != sizeof inodes) _exit(1);
    while (true) pause();
  }
  close(fds[1]);
  std::array<ino_t, 3> inodes{};
  ASSERT_EQ(read(fds[0], inodes.data(), sizeof inodes), static_cast<ssize_t>(sizeof inodes));
  close(fds[0]);
  for (ino_t inode : inodes) ASSERT_TRUE(live_network_namespaces().contains(inode));
  kill(launcher, signal);
  waitpid(launcher, nullptr, 0);
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  bool any = true;
  while (any && Clock::now() < deadline) {
    usleep(20000);
    const auto live = live_network_namespaces();
    any = false;
    for (ino_t inode : inodes) any |= live.contains(inode);
  }
  EXPECT_FALSE(any) << "namespaces outlived their launcher, ended by signal " << signal;
}

TEST_F(ClusterTest, NothingIsLeftAfterInterrupt) { expect_nothing_left_after(SIGINT); }
TEST_F(ClusterTest, NothingIsLeftAfterKill) { expect_nothing_left_after(SIGKILL); }
TEST_F(ClusterTest, NothingIsLeftAfterAbort) { expect_nothing_left_after(SIGABRT); }

// What a user without any right gets, tried by giving up all of ours.
TEST_F(ClusterTest, WorksInAUserNamespace) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: the other tests do this already";
  const pid_t pid = fork();
  if (pid == 0) {
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(1);
    if (!namespaces_allowed()) _exit(77);
    const auto cluster = Cluster::create(small_racks());
    if (!cluster) std::fprintf(stderr, "%s\n", cluster.status().message().c_str());
    if (!cluster || !cluster.value()->in_user_namespace()) _exit(2);
    const pid_t on_node = fork();
    if (on_node == 0) _exit(cluster.value()->enter(2) ? 0 : 3);
    int status = 0;
    waitpid(on_node, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "user namespaces are not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace riffle::cluster::cluster_test
