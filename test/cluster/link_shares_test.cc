// Weights of links (Mesh::set_peer_weights) over real TCP: what they do where what several nodes
// send meets in the queue of a switch. Nodes 1 and 2 send to node 0 without end.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <stdexcept>

#include "lab/cluster/cluster.h"
#include "plugin/entry/options.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/factory.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle::cluster::link_shares_test {
namespace {

constexpr std::size_t kFrame = 256 << 10;
constexpr int kUnderWay = 4;  // frames
constexpr useconds_t kWarmUpUs = 700'000, kMeasuredUs = 1'500'000;
constexpr std::array<int, 3> kWeights = {1, 12, 1};  // of the ways from and to node 0

// A node that answers every frame that left with the next one.
struct Endless final : FrameSink {
  std::unique_ptr<TransportMesh> mesh;
  std::vector<std::byte> outgoing = std::vector<std::byte>(kFrame);
  std::array<std::vector<std::byte>, 3> incoming;
  std::string error;

  void send(int peer) {
    FrameHeader header;
    header.length = kFrame;
    mesh->send(peer, header, outgoing, 0, 1);
  }
  void opened(int peer) override {
    for (int i = 0; peer == 0 && i < kUnderWay; ++i) send(peer);
  }
  // Frames of several streams arrive at once: what they hold is of no interest.
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
    auto& room = incoming[static_cast<std::size_t>(peer)];
    room.resize(header.length + 1);
    return room.data();
  }
  void arrived(int, const FrameHeader&, std::byte*) override {}
  void sent(int peer, std::uint64_t) override { send(peer); }
  void departed(int) override {}
  void lost(int, const Status& why) override { error = why.message(); }
};

struct Shared {
  std::array<Handle, 3> handles;
  std::atomic<int> listening{0}, weighted{0}, phase{0};
  std::array<double, 2> ratio;  // what came from node 1 over what came from node 2: fair, weighted
  double megabits_per_s;
  std::array<std::array<char, 256>, 3> error;
};

void check(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

template <class Condition>
void wait_until(Condition condition, const char* what) {
  for (int ms = 0; !condition(); ++ms) {
    check(ms < 10'000, what);
    usleep(1000);
  }
}

void measure(Reactor& reactor, Endless& node, Shared* shared) {
  const auto received = [&](int peer) {
    std::uint64_t bytes = 0;
    reactor.run_and_wait([&] { bytes = node.mesh->activity(peer).in_bytes; });
    return static_cast<double>(bytes);
  };
  wait_until([&] { return received(1) > 0 && received(2) > 0; }, "nothing arrives");
  for (std::size_t with = 0; with < 2; ++with) {
    if (with == 1) {
      reactor.run_and_wait([&] { node.mesh->set_peer_weights(kWeights); });
      shared->phase = 1;
      wait_until([&] { return shared->weighted == 2; }, "no weights");
    }
    usleep(kWarmUpUs);
    const std::array<double, 2> before = {received(1), received(2)};
    usleep(kMeasuredUs);
    const std::array<double, 2> got = {received(1) - before[0], received(2) - before[1]};
    shared->ratio[with] = got[0] / got[1];
    shared->megabits_per_s = (got[0] + got[1]) * 8 / kMeasuredUs;
  }
  shared->phase = 2;
}

void be(int rank, Shared* shared) {
  setenv("RIFFLE_LOG", "warn", 1);
  reload_config();
  TransportOptions options = options_from(config()).transport;
  options.streams = 1;
  const auto transport = *make_transport(options);
  auto listener = transport->listen(0, 0);
  check(listener.status().is_ok(), listener.status().message());
  shared->handles[static_cast<std::size_t>(rank)] = (*listener)->handle();
  ++shared->listening;
  wait_until([&] { return shared->listening == 3; }, "a node does not listen");
  std::vector<HandleContent> handles;
  for (const Handle& h : shared->handles) handles.push_back(*decode(h));
  const auto reactor = Reactor::acquire(options);
  Endless node;
  reactor->run_and_wait([&] {
    node.mesh = transport->make_mesh(*reactor, std::move(*listener), handles, rank, {}, &node);
    for (int peer = 0; peer < 3; ++peer) {
      if (peer != rank && (peer == 0 || rank == 0)) node.mesh->open(peer);
    }
  });
  if (rank == 0) {
    measure(*reactor, node, shared);
  } else {
    wait_until([&] { return shared->phase >= 1; }, "no first measurement");
    const std::array<int, 3> weights = {kWeights[static_cast<std::size_t>(rank)], 1, 1};
    reactor->run_and_wait([&] { node.mesh->set_peer_weights(weights); });
    ++shared->weighted;
    wait_until([&] { return shared->phase == 2; }, "no second measurement");
  }
  reactor->run_and_wait([&] { node.mesh.reset(); });
}

TEST(LinkShares, GoWithTheWeights) {
  if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
  const auto cluster = Cluster::create(even_profile(3, 400'000));
  ASSERT_TRUE(cluster) << cluster.status().message();
  void* const at =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  Shared* const shared = new (at) Shared();
  std::array<pid_t, 3> pids{};
  for (int rank = 0; rank < 3; ++rank) {
    pids[static_cast<std::size_t>(rank)] = fork();
    if (pids[static_cast<std::size_t>(rank)] != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(40);
    try {
      const Status entered = (*cluster)->enter(rank);
      check(entered.is_ok(), entered.message());
      be(rank, shared);
    } catch (const std::exception& e) {
      std::strncpy(shared->error[static_cast<std::size_t>(rank)].data(), e.what(), 255);
    }
    _exit(0);
  }
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  for (const auto& error : shared->error) EXPECT_STREQ(error.data(), "");
  std::printf("ratio %.2f, with weights of 12 to 1 %.2f, %.0f Mbit/s\n", shared->ratio[0],
              shared->ratio[1], shared->megabits_per_s);
  EXPECT_LE(shared->ratio[0], 3);
  EXPECT_GE(shared->ratio[1], 4);
  EXPECT_LE(shared->ratio[1], 16);
  EXPECT_GE(shared->megabits_per_s, 340) << "the link is used up, nevertheless";
  munmap(at, sizeof(Shared));
}

}  // namespace
}  // namespace riffle::cluster::link_shares_test
