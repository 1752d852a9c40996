// Nodes in subnets of their own with a router between them, with IPv4 or with IPv6 alone: sums are
// right, also where a hop on the way takes smaller packets than both ends, and a loss is named.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>

#include "lab/cluster/command.h"
#include "lab/cluster/namespaces.h"
#include "test/blamed_nodes.h"
#include "test/cluster/job.h"
#include "test/shared_memory.h"

namespace riffle::cluster::routed_networks_test {
namespace {

constexpr int kNodes = 4, kKilled = 2;
constexpr std::size_t kCount = 1 << 19;  // floats

struct Shared {
  Meeting meeting;
  std::atomic<int> rounds[kNodes], go_on{0};
  char error[kNodes][512];
};

Status write_setting(const std::string& path, const char* value) {
  std::ofstream file(path);
  file << value;
  return file.flush() ? Status::ok() : system_error("cannot write " + path);
}

void all_reduce(coll::Communicator* c, int node, int round) {
  std::vector<float> data(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    data[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(node + round)) % 101);
  }
  coll::Request* const request = checked(
      coll::all_reduce(c, data.data(), data.data(), kCount, DataType::kFloat32, ReduceOp::kSum));
  wait_until([&] { return checked(coll::test(request, nullptr)); }, "all-reduce did not end");
  for (std::size_t i = 0; i < kCount; ++i) {
    float sum = 0;
    for (int n = 0; n < kNodes; ++n) {
      sum += static_cast<float>((i * 7 + static_cast<std::size_t>(n + round)) % 101);
    }
    check(data[i] == sum, "wrong sum in round " + std::to_string(round));
  }
}

class RoutedNetworks : public ::testing::TestWithParam<bool> {  // IPv6
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
  }

  static std::string address(int node, const char* host) {
    const std::string number = std::to_string(node + 1);
    return GetParam() ? "fd79:" + number + "::" + host : "10.79." + number + "." + host;
  }
  static std::string network() { return GetParam() ? "/64 nodad" : "/24"; }

  // What the router lets through to each node, over cables that take 9000.
  void set_up(const std::array<int, kNodes>& mtus) {
    const auto router = [&](const std::vector<pid_t>& holders) -> Status {
      std::string links;
      for (int n = 0; n < kNodes; ++n) {
        const std::string port = "n" + std::to_string(n);
        links += "link add " + port + " type veth peer name eth0 netns " +
                 std::to_string(holders[static_cast<std::size_t>(n)]) + "\nlink set " + port +
                 " up mtu 9000\naddress add " + address(n, "254") + network() + " dev " + port +
                 "\nroute add " + address(n, "1") + (GetParam() ? "/128" : "/32") + " dev " + port +
                 " mtu " + std::to_string(mtus[static_cast<std::size_t>(n)]) + "\n";
      }
      if (const auto made = run_command({"ip", "-batch", "-"}, links); !made) return made.status();
      return write_setting(
          GetParam() ? "/proc/sys/net/ipv6/conf/all/forwarding" : "/proc/sys/net/ipv4/ip_forward",
          "1");
    };
    const auto node = [&](int n) -> Status {
      const std::string links = "link set lo up\nlink set eth0 up mtu 9000\naddress add " +
                                address(n, "1") + network() + " dev eth0\nroute add " +
                                (GetParam() ? "::/0" : "0.0.0.0/0") + " via " + address(n, "254") +
                                "\n";
      return run_command({"ip", "-batch", "-"}, links).status();
    };
    auto made = Namespaces::create(kNodes, router, node);
    ASSERT_TRUE(made) << made.status().message();
    nodes_ = std::move(*made);
    mtus_ = mtus;
  }

  // Whether this process's kernel has learned what the router lets through.
  void check_mtu_to(int node) const {
    const std::string mtu = "mtu " + std::to_string(mtus_[static_cast<std::size_t>(node)]);
    const std::string route = checked(run_command({"ip", "route", "get", address(node, "1")}));
    check(route.find(mtu) != std::string::npos, "not " + mtu + ": " + route);
  }

  void start() {
    for (int node = 0; node < kNodes; ++node) {
      const pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) _exit(be(node));
      pids_[static_cast<std::size_t>(node)] = pid;
    }
  }
  int be(int node) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(60);
    try {
      const Status entered = nodes_->enter(node);
      check(entered.is_ok(), entered.message());
      setenv("RIFFLE_SOCKET_IFNAME", "eth0", 1);
      setenv("RIFFLE_COLLNET", "on", 1);
      setenv("RIFFLE_PLAN", "direct", 1);  // all nodes meet
      setenv("RIFFLE_LOG", "warn", 1);
      setenv("RIFFLE_PEER_TIMEOUT", "5", 1);
      reload_config();
      coll::Communicator* const c = connect(shared_->meeting, node, kNodes);
      for (int round = 0; round < 3 || shared_->go_on != 0; ++round) {
        all_reduce(c, node, round);
        shared_->rounds[node] = round + 1;
      }
      for (int n = 0; n < kNodes; ++n) {
        if (n != node && mtus_[static_cast<std::size_t>(n)] < 9000) check_mtu_to(n);
      }
      coll::close(c);
    } catch (const std::exception& e) {
      std::strncpy(shared_->error[node], e.what(), sizeof shared_->error[node] - 1);
      return 1;
    }
    return 0;
  }
  void end() {
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
  }
  void run(const std::array<int, kNodes>& mtus) {
    ASSERT_NO_FATAL_FAILURE(set_up(mtus));
    start();
    end();
    for (int node = 0; node < kNodes; ++node) {
      EXPECT_STREQ(shared_->error[node], "") << "node " << node;
      EXPECT_EQ(shared_->rounds[node], 3) << "node " << node;
    }
  }

  std::unique_ptr<Namespaces> nodes_;
  std::array<int, kNodes> mtus_{};
  std::array<pid_t, kNodes> pids_{};
  SharedMemory<Shared> shared_;
};
INSTANTIATE_TEST_SUITE_P(Ipv4AndIpv6, RoutedNetworks, ::testing::Bool());

TEST_P(RoutedNetworks, SumsAreRight) { run({9000, 9000, 9000, 9000}); }

// Both ends take large packets, and the router refuses them on the way to nodes 1 and 2.
TEST_P(RoutedNetworks, SumsAreRightWhereTheRouterTakesSmallerPackets) {
  run({9000, 1500, 1280, 9000});
}

TEST_P(RoutedNetworks, ALossIsNamed) {
  shared_->go_on = 1;
  ASSERT_NO_FATAL_FAILURE(set_up({9000, 9000, 9000, 9000}));
  start();
  for (int ms = 0; shared_->rounds[kKilled] < 5 && ms < 20000; ++ms) usleep(1000);
  EXPECT_GE(shared_->rounds[kKilled], 5);
  kill(pids_[kKilled], SIGKILL);
  end();
  for (int node = 0; node < kNodes; ++node) {
    if (node == kKilled) continue;
    EXPECT_EQ(blamed_in(shared_->error[node]), std::set<int>{kKilled}) << shared_->error[node];
  }
}

}  // namespace
}  // namespace riffle::cluster::routed_networks_test
