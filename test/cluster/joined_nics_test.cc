// Machines with several NICs, and IPv6, on real links: the NICs of a node are joined as streams,
// and all of them carry traffic. Two nodes, up to two cables of 200 Mbit/s between them.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>

#include "lab/cluster/command.h"
#include "lab/cluster/namespaces.h"
#include "plugin/net/net_service.h"
#include "test/cluster/job.h"

namespace riffle::cluster::joined_nics_test {
namespace {

constexpr std::size_t kCount = 1 << 20;  // floats
constexpr std::int64_t kBytes = 4 * kCount;

// Addresses of eth0 and eth1; empty: the node has no such NIC in use.
using Addresses = std::array<std::array<std::string, 2>, 2>;  // [node][nic]
struct Sent {
  std::int64_t bytes = 0, packets = 0;
};
using Counters = std::array<Sent, 2>;  // by NIC

struct Shared {
  Meeting meeting;
  Handle net;
  std::atomic<int> measured{0};
  Counters all_reduce[2], transfer;
  char error[2][512];
};

Counters sent() {
  Counters sent{};
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    for (std::size_t nic = 0; nic < 2; ++nic) {
      const std::string name = "eth" + std::to_string(nic) + ":";
      const auto at = line.find(name);
      if (at == std::string::npos) continue;
      std::istringstream fields(line.substr(at + name.size()));
      for (int i = 0; i < 9; ++i) fields >> sent[nic].bytes;
      fields >> sent[nic].packets;
    }
  }
  return sent;
}

Counters since(const Counters& before) {
  Counters now = sent();
  for (std::size_t nic = 0; nic < 2; ++nic) {
    now[nic].bytes -= before[nic].bytes;
    now[nic].packets -= before[nic].packets;
  }
  return now;
}

void all_reduce(int node, Shared* shared) {
  coll::Communicator* const c = connect(shared->meeting, node, 2);
  std::vector<float> data(kCount, static_cast<float>(node + 1));
  const Counters before = sent();
  coll::Request* const request = checked(
      coll::all_reduce(c, data.data(), data.data(), kCount, DataType::kFloat32, ReduceOp::kSum));
  wait_until([&] { return checked(coll::test(request, nullptr)); }, "all-reduce did not end");
  // What is in the kernel still has to leave: the peer's result says that it did.
  ++shared->measured;
  wait_until([&] { return shared->measured == 2; }, "the other node's all-reduce did not end");
  shared->all_reduce[node] = since(before);
  check(data == std::vector<float>(kCount, 3), "wrong sum");
  coll::close(c);
}

// Node 0 sends to node 1.
void transfer(int node, Shared* shared) {
  std::vector<char> data(kBytes, static_cast<char>('a' + node));
  void* const at = data.data();
  const std::size_t size = data.size();
  const int tag = 0;
  net::Request* request = nullptr;
  if (node == 1) {
    net::Listener* const listener =
        checked(net::listen(options_from(config()).transport, 0, 0, &shared->net));
    ++shared->meeting.listening;
    net::RecvConnection* c = nullptr;
    wait_until([&] { return (c = checked(net::accept(listener))) != nullptr; }, "no sender");
    request = checked(net::irecv(c, {&at, 1}, {&size, 1}, {&tag, 1}));
    wait_until([&] { return checked(net::test(request, nullptr)); }, "receive did not end");
    check(data == std::vector<char>(kBytes, 'a'), "wrong data");
    ++shared->measured;
    net::close(c);
    net::close(listener);
  } else {
    wait_until([&] { return shared->meeting.listening == 3; }, "no listener");
    Handle handle = shared->net;
    net::SendConnection* c = nullptr;
    wait_until(
        [&] {
          return (c = checked(net::connect(options_from(config()).transport,
                                           options_from(config()).net, 0, &handle))) != nullptr;
        },
        "no receiver");
    const Counters before = sent();
    request = checked(net::isend(c, at, size, tag));
    wait_until([&] { return checked(net::test(request, nullptr)); }, "send did not end");
    wait_until([&] { return shared->measured == 3; }, "the message did not arrive");
    shared->transfer = since(before);
    net::close(c);
  }
}

constexpr std::array<int, 2> kUsual = {1500, 1500};

class NicsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    void* const at =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    shared_ = new (at) Shared();
  }
  void TearDown() override {
    if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  }

  // `mtus`: of each node's end of the cables. Where they are not the usual ones, the kernel makes
  // the packets as they are on the wire, so that the counters tell their size.
  void run(const Addresses& addresses, const std::array<int, 2>& mtus = kUsual) {
    const auto cables = [](const std::vector<pid_t>& holders) {
      std::string links;
      for (const char* nic : {"eth0", "eth1"}) {
        links += std::string("link add ") + nic + " netns " + std::to_string(holders[0]) +
                 " type veth peer name " + nic + " netns " + std::to_string(holders[1]) + "\n";
      }
      return run_command({"ip", "-batch", "-"}, links).status();
    };
    const auto addressed = [&](int node) {
      std::string links = "link set lo up\n", limits;
      for (std::size_t nic = 0; nic < 2; ++nic) {
        const std::string name = "eth" + std::to_string(nic);
        const std::string& address = addresses[static_cast<std::size_t>(node)][nic];
        links += "link set " + name + " up mtu " +
                 std::to_string(mtus[static_cast<std::size_t>(node)]) +
                 (mtus == kUsual ? " gso_max_size 16384\n" : " gso_max_segs 1\n");
        if (address.empty()) continue;
        const bool v6 = address.find(':') != std::string::npos;
        links += "address add " + address + (v6 ? "/64 nodad" : "/24") + " dev " + name + "\n";
        limits += "qdisc add dev " + name + " root tbf rate 200mbit burst 72000 limit 1500000\n";
      }
      const auto linked = run_command({"ip", "-batch", "-"}, links);
      return linked ? run_command({"tc", "-batch", "-"}, limits).status() : linked.status();
    };
    auto nodes = Namespaces::create(2, cables, addressed);
    ASSERT_TRUE(nodes) << nodes.status().message();
    std::array<pid_t, 2> pids{};
    for (int node = 0; node < 2; ++node) {
      pids[static_cast<std::size_t>(node)] = fork();
      if (pids[static_cast<std::size_t>(node)] == 0) _exit(be(node, *nodes.value()));
    }
    for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
    EXPECT_STREQ(shared_->error[0], "");
    EXPECT_STREQ(shared_->error[1], "");
  }

  void begin_anew() { shared_ = new (shared_) Shared(); }

  int be(int node, const Namespaces& nodes) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(60);
    try {
      const Status entered = nodes.enter(node);
      check(entered.is_ok(), entered.message().c_str());
      setenv("RIFFLE_COLLNET", "on", 1);
      setenv("RIFFLE_STREAMS", "1", 1);  // more where there are more NICs
      setenv("RIFFLE_LOG", "warn", 1);
      reload_config();
      all_reduce(node, shared_);
      transfer(node, shared_);
    } catch (const std::exception& e) {
      std::strncpy(shared_->error[node], e.what(), sizeof shared_->error[node] - 1);
      return 1;
    }
    return 0;
  }

  // Both cables carried a fair part of what one node sent.
  static void expect_both(const Counters& sent) {
    EXPECT_GE(sent[0].bytes, kBytes / 3);
    EXPECT_GE(sent[1].bytes, kBytes / 3);
  }
  static void expect_first_only(const Counters& sent) {
    EXPECT_GE(sent[0].bytes, kBytes);
    EXPECT_LE(sent[1].bytes, kBytes / 100);
  }
  // On average, with acknowledgements among them.
  void expect_packets(std::int64_t least, std::int64_t most) const {
    for (const Sent& sent :
         {shared_->all_reduce[0][0], shared_->all_reduce[1][0], shared_->transfer[0]}) {
      EXPECT_GE(sent.bytes, least * sent.packets);
      EXPECT_LE(sent.bytes, most * sent.packets);
    }
  }

  Shared* shared_ = nullptr;
};

TEST_F(NicsTest, TwoNicsPerNodeCarryHalfEach) {
  run({{{"10.78.1.1", "10.78.2.1"}, {"10.78.1.2", "10.78.2.2"}}});
  expect_both(shared_->all_reduce[0]);
  expect_both(shared_->all_reduce[1]);
  expect_both(shared_->transfer);
}

TEST_F(NicsTest, TwoNicsPerNodeWithIpv6Only) {
  run({{{"fd78:1::1", "fd78:2::1"}, {"fd78:1::2", "fd78:2::2"}}});
  expect_both(shared_->all_reduce[0]);
  expect_both(shared_->all_reduce[1]);
  expect_both(shared_->transfer);
}

TEST_F(NicsTest, OneNicWithIpv6) {
  run({{{"fd78:1::1", ""}, {"fd78:1::2", ""}}});
  expect_first_only(shared_->all_reduce[0]);
  expect_first_only(shared_->transfer);
}

// A node whose second NIC leads nowhere the other node is.
TEST_F(NicsTest, NodesWithDifferentNicsMeetWhereTheyCan) {
  run({{{"10.78.1.1", "10.78.2.1"}, {"10.78.1.2", ""}}});
  expect_first_only(shared_->all_reduce[0]);
  expect_first_only(shared_->transfer);
}

constexpr std::int64_t kEthernet = 14;  // of a packet's header

TEST_F(NicsTest, SmallPackets) {
  for (const Addresses& addresses : {Addresses{{{"10.78.1.1", ""}, {"10.78.1.2", ""}}},
                                     Addresses{{{"fd78:1::1", ""}, {"fd78:1::2", ""}}}}) {
    begin_anew();
    run(addresses, {1280, 1280});
    expect_first_only(shared_->all_reduce[0]);
    expect_packets(600, 1280 + kEthernet);
  }
}

TEST_F(NicsTest, LargePackets) {
  for (const Addresses& addresses : {Addresses{{{"10.78.1.1", ""}, {"10.78.1.2", ""}}},
                                     Addresses{{{"fd78:1::1", ""}, {"fd78:1::2", ""}}}}) {
    begin_anew();
    run(addresses, {9000, 9000});
    expect_first_only(shared_->all_reduce[0]);
    expect_packets(2500, 9000 + kEthernet);
  }
}

// A switch, and this cable, drops what is larger than its port's packets: the ends must agree.
TEST_F(NicsTest, LargePacketsOfOneNodeAlone) {
  for (const std::array<int, 2>& mtus : {std::array{9000, 1500}, std::array{1500, 9000}}) {
    begin_anew();
    run({{{"10.78.1.1", ""}, {"10.78.1.2", ""}}}, mtus);
    expect_first_only(shared_->all_reduce[0]);
    expect_packets(700, 1500 + kEthernet);
  }
}

}  // namespace
}  // namespace riffle::cluster::joined_nics_test
