// A node's NIC goes down and comes back within the peer timeout, on an emulated cluster: calls wait
// and go on, every sum is right, every message comes once and in order, and no node sees an
// error. Linux 6.15 and later: before, TCP waits as long again as the outage took.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "lab/cluster/cluster.h"
#include "plugin/net/net_service.h"
#include "plugin/transport/reactor/socket.h"
#include "test/cluster/job.h"
#include "test/shared_memory.h"

namespace riffle::cluster::nic_outage_test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kNodes = 4, kCut = 2;
constexpr std::size_t kCount = 1 << 18;  // floats; some 30 ms at 400 Mbit/s
constexpr int kTimeoutS = 12;            // RIFFLE_PEER_TIMEOUT
constexpr auto kOutage = 9s;             // the next attempt would be at some 16 s
constexpr auto kSoon = 2500ms;           // after it: an eighth of the timeout, and time to work

constexpr int kWaitMs = 30'000;

struct Shared {
  Meeting meeting;
  std::atomic<int> rounds[kNodes], last{1 << 30};
  char error[kNodes][512];
};

template <class Condition>
bool eventually(Condition condition, Clock::duration limit) {
  for (const auto end = Clock::now() + limit; !condition();) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

float element(int node, int round, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(node * 3 + round)) % 101);
}

// Two calls are in flight all the time; whatever is lost or comes twice shows in a sum.
void all_reduce(int node, Shared& shared) {
  coll::Communicator* const c = connect(shared.meeting, node, kNodes);
  std::array<std::vector<float>, 2> data;
  std::array<coll::Request*, 2> requests{};
  const auto post = [&](int round) {
    auto& own = data[static_cast<std::size_t>(round % 2)];
    own.resize(kCount);
    for (std::size_t i = 0; i < kCount; ++i) own[i] = element(node, round, i);
    requests[static_cast<std::size_t>(round % 2)] = checked(
        coll::all_reduce(c, own.data(), own.data(), kCount, DataType::kFloat32, ReduceOp::kSum));
  };
  post(0);
  for (int round = 0; round < shared.last; ++round) {
    post(round + 1);
    const auto at = static_cast<std::size_t>(round % 2);
    wait_until([&] { return checked(coll::test(requests[at], nullptr)); }, "it did not end",
               kWaitMs);
    for (std::size_t i = 0; i < kCount; ++i) {
      float sum = 0;
      for (int n = 0; n < kNodes; ++n) sum += element(n, round, i);
      check(data[at][i] == sum, "wrong sum in round " + std::to_string(round));
    }
    shared.rounds[node] = round + 1;
  }
  const auto at = static_cast<std::size_t>(shared.last % 2);
  wait_until([&] { return checked(coll::test(requests[at], nullptr)); }, "the last did not end",
             kWaitMs);
  coll::close(c);
}

// Node 0 sends numbered messages to the node that is cut off.
void transfer(int node, Shared& shared) {
  std::vector<std::uint32_t> data(kCount);
  const Transfer end =
      node == kCut ? receive_end(shared.meeting, node) : send_end(shared.meeting, kCut);
  for (int round = 0; round < shared.last; ++round) {
    const auto value = static_cast<std::uint32_t>(round) * 1'000'003U;
    for (std::uint32_t i = 0; end.sender != nullptr && i < kCount; ++i) data[i] = value + i;
    net::Request* const request = post(end, data.data(), data.size() * sizeof data[0]);
    wait_until([&] { return checked(net::test(request, nullptr)); }, "it did not end", kWaitMs);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      check(data[i] == value + i, "wrong bytes in message " + std::to_string(round));
    }
    shared.rounds[node] = round + 1;
  }
  end.close();
}

bool kernel_can() {
  Endpoint endpoint;
  const auto listener = listen_on({.interface = "lo", .address = "127.0.0.1"}, &endpoint);
  return listener && retry_within(listener->get(), 1'000'000'000);
}

class NicOutage : public ::testing::TestWithParam<const char*> {  // RIFFLE_ENCRYPT
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    if (!kernel_can()) GTEST_SKIP() << "before Linux 6.15";
    auto made = Cluster::create(even_profile(kNodes, 400'000));
    ASSERT_TRUE(made) << made.status().message();
    cluster_ = std::move(*made);
  }
  void TearDown() override {
    for (const auto& [node, pid] : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  void start(const std::vector<int>& nodes, void (*body)(int, Shared&)) {
    for (const int node : nodes) {
      const pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) _exit(be(node, body));
      pids_.emplace_back(node, pid);
    }
  }
  int be(int node, void (*body)(int, Shared&)) {
    const Knobs knobs = {{"RIFFLE_LOG", "warn"},
                         {"RIFFLE_ENCRYPT", GetParam()},
                         {"RIFFLE_PEER_TIMEOUT", std::to_string(kTimeoutS)}};
    return is_done(
               *cluster_, node, knobs, 100, [&] { body(node, *shared_.operator->()); },
               shared_->error[node])
               ? 0
               : 1;
  }

  void set_link(const char* state) const {
    const auto done = cluster_->run(kCut, {"ip", "link", "set", "eth0", state}, 5000);
    ASSERT_TRUE(done) << done.status().message();
  }
  int least_rounds() const {
    int least = shared_->last;
    for (const auto& [node, pid] : pids_) least = std::min(least, shared_->rounds[node].load());
    return least;
  }
  int most_rounds() const {
    int most = 0;
    for (const auto& [node, pid] : pids_) most = std::max(most, shared_->rounds[node].load());
    return most;
  }
  void expect_no_error() const {
    for (const auto& [node, pid] : pids_) EXPECT_STREQ(shared_->error[node], "") << "node " << node;
  }

  void cut_for(Clock::duration outage) {
    ASSERT_NO_FATAL_FAILURE(set_link("down"));
    std::this_thread::sleep_for(300ms);
    const int before = most_rounds();
    std::this_thread::sleep_for(outage - 300ms);
    EXPECT_LE(most_rounds(), before + 1) << "it was not cut off";
    ASSERT_NO_FATAL_FAILURE(set_link("up"));
    const auto up = Clock::now();
    EXPECT_TRUE(eventually([&] { return least_rounds() > before + 1; }, 10s))
        << "it does not go on";
    EXPECT_LT(Clock::now() - up, kSoon);
  }
  void work() {
    const int begin = least_rounds();
    EXPECT_TRUE(eventually([&] { return least_rounds() >= begin + 10; }, 20s));
    expect_no_error();
  }
  void end() {
    shared_->last = most_rounds() + 20;
    for (const auto& [node, pid] : pids_) {
      int status = -1;
      waitpid(pid, &status, 0);
      EXPECT_EQ(status, 0) << "node " << node;
    }
    expect_no_error();
    pids_.clear();
  }

  std::unique_ptr<Cluster> cluster_;
  std::vector<std::pair<int, pid_t>> pids_;
  SharedMemory<Shared> shared_;
};
INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, NicOutage, ::testing::Values("0", "1"));

TEST_P(NicOutage, AllReducesGoOn) {
  start({0, 1, 2, 3}, all_reduce);
  work();
  cut_for(kOutage);
  work();
  end();
}

TEST_P(NicOutage, TransfersGoOn) {
  start({0, kCut}, transfer);
  work();
  cut_for(kOutage);
  work();
  end();
}

TEST_P(NicOutage, ShortOnesOneAfterTheOther) {
  start({0, 1, 2, 3}, all_reduce);
  for (const auto outage : {350ms, 700ms, 400ms, 1100ms, 350ms}) {
    work();
    cut_for(outage);
    if (HasFailure()) break;
  }
  work();
  end();
}

}  // namespace
}  // namespace riffle::cluster::nic_outage_test
