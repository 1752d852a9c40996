// Nodes as processes, one of them killed or stopped at the worst moments: every survivor gets one
// error that names the culprit, in time, and nobody hangs.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/collective/coll_service.h"
#include "plugin/config/config.h"
#include "plugin/entry/options.h"
#include "plugin/transport/reactor/reactor.h"
#include "test/blamed_nodes.h"
#include "test/own_job.h"
#include "test/shared_memory.h"

namespace riffle::faults_test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kNodes = 4;
constexpr int kTimeoutS = 2;  // RIFFLE_PEER_TIMEOUT
constexpr std::size_t kCount = 1 << 20;

// What the processes of one case share.
struct Shared {
  Handle handles[kNodes];
  std::atomic<int> listening, connected, rounds[kNodes], errors[kNodes];
  char message[kNodes][512];
};

class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // A job of its own, as knobs are compared with those of other tests of this session else.
    setenv("TORCHELASTIC_RUN_ID", ("faults " + std::to_string(getpid())).c_str(), 1);
    setenv("RIFFLE_SOCKET_IFNAME", "=lo", 1);
    setenv("RIFFLE_COLLNET", "on", 1);
    setenv("RIFFLE_LOG", "warn", 1);
    setenv("RIFFLE_PEER_TIMEOUT", std::to_string(kTimeoutS).c_str(), 1);
    setenv("RIFFLE_CONNECT_TIMEOUT", std::to_string(kTimeoutS).c_str(), 1);
    reload_config();
  }
  void TearDown() override {
    for (const pid_t p : pids_) {
      kill(p, SIGKILL);
      waitpid(p, nullptr, 0);
    }
  }

  void start(const std::function<void(int)>& node) {
    for (int r = 0; r < kNodes; ++r) {
      const pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) {
        node(r);
        _exit(0);
      }
      pids_.push_back(pid);
    }
  }

  coll::Communicator* connect(int rank, const std::function<void()>& before_connect = {}) {
    Result<coll::Listener*> l = coll::listen(options_from(config()).transport, 0,
                                             testing::forked_job(), &shared_->handles[rank]);
    if (!l) return give_up(rank, l.status().message());
    ++shared_->listening;
    while (shared_->listening < kNodes) std::this_thread::sleep_for(1ms);
    if (before_connect) before_connect();
    std::vector<const Handle*> handles;
    for (const Handle& h : shared_->handles) handles.push_back(&h);
    Result<coll::Communicator*> c =
        coll::connect(handles, rank, *l, options_from(config()).collective);
    coll::close(*l);
    if (!c) return give_up(rank, c.status().message());
    ++shared_->connected;
    return *c;
  }

  coll::Communicator* give_up(int rank, const std::string& why) {
    std::strncpy(shared_->message[rank], why.c_str(), sizeof shared_->message[rank] - 1);
    ++shared_->errors[rank];
    return nullptr;
  }

  // All-reduces without end until one fails.
  void work(int rank, coll::Communicator* c) {
    std::vector<float> data(kCount, 1);
    while (true) {
      Result<coll::Request*> q =
          coll::all_reduce(c, data.data(), data.data(), kCount, DataType::kFloat32, ReduceOp::kMax);
      if (!q) return (void)give_up(rank, q.status().message());
      while (true) {
        const Result<bool> done = coll::test(*q, nullptr);
        if (!done) return (void)give_up(rank, done.status().message());
        if (*done) break;
        std::this_thread::sleep_for(50us);
      }
      ++shared_->rounds[rank];
    }
  }

  // Waits until every survivor has exactly one error; the time it took.
  Clock::duration wait_for_errors(int culprit, Clock::duration limit) {
    const auto begin = Clock::now();
    while (Clock::now() - begin < limit) {
      int have = 0;
      for (int r = 0; r < kNodes; ++r) have += r != culprit && shared_->errors[r] == 1;
      if (have == kNodes - (culprit >= 0)) return Clock::now() - begin;
      std::this_thread::sleep_for(5ms);
    }
    return limit;
  }

  void expect_named(int culprit) {
    for (int r = 0; r < kNodes; ++r) {
      if (r == culprit) continue;
      EXPECT_EQ(shared_->errors[r], 1) << "node " << r;
      const std::string text = shared_->message[r];
      EXPECT_NE(text.find("node " + std::to_string(culprit)), std::string::npos)
          << "node " << r << ": " << text;
    }
  }

  void wait_for_rounds(int n) {
    const auto deadline = Clock::now() + 20s;
    for (int r = 0; r < kNodes; ++r) {
      while (shared_->rounds[r] < n && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
      ASSERT_GE(shared_->rounds[r], n) << "node " << r << ": " << shared_->message[r];
    }
  }

  static constexpr auto kLimit = std::chrono::seconds(kTimeoutS + 1);
  SharedMemory<Shared> shared_;
  std::vector<pid_t> pids_;
};

TEST_F(FaultsTest, KilledInMidCollective) {
  start([&](int r) {
    if (coll::Communicator* c = connect(r)) work(r, c);
  });
  wait_for_rounds(3);
  kill(pids_[2], SIGKILL);
  EXPECT_LT(wait_for_errors(2, 2 * kLimit), kLimit);
  expect_named(2);
}

TEST_F(FaultsTest, StoppedInMidCollective) {
  start([&](int r) {
    if (coll::Communicator* c = connect(r)) work(r, c);
  });
  wait_for_rounds(3);
  kill(pids_[1], SIGSTOP);
  EXPECT_LT(wait_for_errors(1, 2 * kLimit), kLimit);
  expect_named(1);
}

// A debugger, or a virtual machine that moves to another host: it costs time and nothing else.
TEST_F(FaultsTest, FrozenForLessThanTheTimeoutCostsTimeOnly) {
  start([&](int r) {
    if (coll::Communicator* c = connect(r)) work(r, c);
  });
  wait_for_rounds(3);
  for (const int node : {1, 0, 3}) {
    kill(pids_[static_cast<std::size_t>(node)], SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(kTimeoutS * 700));
    const int before = shared_->rounds[node];
    kill(pids_[static_cast<std::size_t>(node)], SIGCONT);
    wait_for_rounds(before + 3);
  }
  // All of them, as when the job is suspended: longer than the timeout.
  for (const pid_t p : pids_) kill(p, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(kTimeoutS * 1300));
  const int before = shared_->rounds[0];
  for (const pid_t p : pids_) kill(p, SIGCONT);
  wait_for_rounds(before + 3);
  for (int r = 0; r < kNodes; ++r) EXPECT_EQ(shared_->errors[r], 0) << shared_->message[r];
}

TEST_F(FaultsTest, KilledWhileItsForkedChildLivesOn) {
  start([&](int r) {
    coll::Communicator* c = connect(r);
    if (c == nullptr) return;
    if (r == 3 && fork() == 0) {  // a data loader: inherits everything, knows nothing
      for (const int output : {1, 2}) close(output);  // or who reads them waits for it
      std::this_thread::sleep_for(10s);
      _exit(0);
    }
    work(r, c);
  });
  wait_for_rounds(2);
  kill(pids_[3], SIGKILL);
  EXPECT_LT(wait_for_errors(3, 2 * kLimit), kLimit);
  expect_named(3);
}

TEST_F(FaultsTest, KilledBeforeConnect) {
  start([&](int r) {
    connect(r, [&] {
      if (r == 2) raise(SIGKILL);
    });
  });
  EXPECT_LT(wait_for_errors(2, 2 * kLimit), kLimit);
  for (int r = 0; r < kNodes; ++r) {
    if (r == 2) continue;
    EXPECT_NE(std::string(shared_->message[r]), "");
  }
}

TEST_F(FaultsTest, StoppedBeforeConnect) {
  start([&](int r) {
    connect(r, [&] {
      if (r == 1) raise(SIGSTOP);
    });
  });
  EXPECT_LT(wait_for_errors(1, 2 * kLimit), kLimit);
}

// Modes do not exist yet, and there is nothing to go on with: an error, whatever is set.
class LostInConnect : public FaultsTest,
                      public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Modes, LostInConnect,
                         ::testing::Values(std::pair("RIFFLE_SYNC", "exact"),
                                           std::pair("RIFFLE_SYNC", "ds_sync"),
                                           std::pair("RIFFLE_SYNC", "moshpit"),
                                           std::pair("RIFFLE_SYNC", "shadow_sync"),
                                           std::pair("RIFFLE_SPARSE", "0.01")));

TEST_P(LostInConnect, IsAnErrorInEveryModeAlsoWhereALossIsNone) {
  const std::vector<std::pair<const char*, const char*>> knobs = {{"RIFFLE_ON_LOSS", "continue"},
                                                                  {"RIFFLE_OPTIMIZER", "sgd"},
                                                                  {"RIFFLE_PEER_TIMEOUT", "1"},
                                                                  {"RIFFLE_CONNECT_TIMEOUT", "1"},
                                                                  GetParam()};
  for (const auto& [name, value] : knobs) setenv(name, value, 1);
  reload_config();
  start([&](int r) {
    connect(r, [&] {
      if (r == 1) raise(SIGKILL);
      if (r == 3) raise(SIGSTOP);
    });
  });
  const auto deadline = Clock::now() + 20s;
  const auto have_errors = [&] { return shared_->errors[0] > 0 && shared_->errors[2] > 0; };
  while (!have_errors() && Clock::now() < deadline) std::this_thread::sleep_for(5ms);
  for (const auto& [name, value] : knobs) unsetenv(name);
  EXPECT_EQ(shared_->connected, 0);
  for (const int r : {0, 2}) {
    const std::string text = shared_->message[r];
    EXPECT_EQ(shared_->errors[r], 1) << "node " << r;
    // Of which of the two, depends on whose time is over first.
    const std::set<int> blamed = blamed_in(text);
    EXPECT_FALSE(blamed.empty()) << text;
    for (const int node : blamed) EXPECT_TRUE(node == 1 || node == 3) << text;
  }
}

TEST_F(FaultsTest, KilledInsteadOfClosing) {
  start([&](int r) {
    coll::Communicator* c = connect(r);
    if (c == nullptr) return;
    while (shared_->connected < kNodes) std::this_thread::sleep_for(1ms);
    if (r == 0) raise(SIGKILL);
    std::this_thread::sleep_for(300ms);
    coll::close(c);  // must neither hang nor crash
    ++shared_->rounds[r];
  });
  for (int r = 0; r < kNodes; ++r) {
    int status = 0;
    ASSERT_EQ(waitpid(pids_[r], &status, 0), pids_[r]);
    if (r != 0) {
      EXPECT_TRUE(WIFEXITED(status));
      EXPECT_EQ(shared_->rounds[r], 1);
    }
  }
  pids_.clear();
}

TEST_F(FaultsTest, DifferentKnobsAreAnAgreedFailureThatNamesHostAndKnob) {
  start([&](int r) {
    if (r == 2) {
      setenv("RIFFLE_CHUNK_BYTES", "512K", 1);
      reload_config();
    }
    connect(r);
  });
  wait_for_errors(-1, kLimit);
  for (int r = 0; r < kNodes; ++r) {
    const std::string text = shared_->message[r];
    EXPECT_NE(text.find("RIFFLE_CHUNK_BYTES"), std::string::npos) << text;
    EXPECT_EQ(text, shared_->message[0]);
  }
}

// All the descriptors below the limit but `left` are taken.
void leave_descriptors(int left) {
  std::vector<int> free;
  while (static_cast<int>(free.size()) < left) free.push_back(dup(STDERR_FILENO));
  const rlimit limit = {static_cast<rlim_t>(free.back() + 1), static_cast<rlim_t>(free.back() + 1)};
  for (const int fd : free) close(fd);
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_F(FaultsTest, TooFewDescriptorsAreAnAgreedFailureThatNamesNodeAndLimit) {
  const std::vector<std::pair<const char*, const char*>> knobs = {{"RIFFLE_STREAMS", "4"},
                                                                  {"RIFFLE_CONNECT_TIMEOUT", "30"}};
  for (const auto& [name, value] : knobs) setenv(name, value, 1);
  reload_config();
  start([&](int r) {
    const auto reactor = Reactor::acquire(options_from(config()).transport);
    connect(r, [&] {
      if (r == 2) leave_descriptors(8);  // enough for its part of connect, not for three links
    });
  });
  const auto took = wait_for_errors(-1, 10s);
  for (const auto& [name, value] : knobs) unsetenv(name);
  EXPECT_LT(took, 5s) << "and not RIFFLE_CONNECT_TIMEOUT";
  for (int r = 0; r < kNodes; ++r) {
    const std::string text = shared_->message[r];
    EXPECT_NE(text.find("rank 2 on "), std::string::npos) << text;
    EXPECT_NE(text.find("(ulimit -n), has "), std::string::npos) << text;
    EXPECT_NE(text.find("needs 12 more"), std::string::npos) << text;
    EXPECT_EQ(text, shared_->message[0]);
  }
}

TEST_F(FaultsTest, AMissingFabricFileIsAnAgreedFailureThatNamesIt) {
  setenv("RIFFLE_FABRIC", "/nonexistent/fabric.toml", 1);
  reload_config();
  start([&](int r) { connect(r); });
  wait_for_errors(-1, kLimit);
  unsetenv("RIFFLE_FABRIC");
  for (int r = 0; r < kNodes; ++r) {
    EXPECT_NE(std::string(shared_->message[r]).find("/nonexistent/fabric.toml"), std::string::npos)
        << shared_->message[r];
  }
}

}  // namespace
}  // namespace riffle::faults_test
