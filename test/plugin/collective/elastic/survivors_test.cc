// RIFFLE_ON_LOSS=continue over TCP, nodes as processes: some are killed or stopped in
// mid-collective, the others finish every call with the same bits, and a stopped one that wakes up
// ends with one error.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plugin/collective/coll_service.h"
#include "plugin/config/config.h"
#include "plugin/entry/options.h"
#include "test/own_job.h"
#include "test/sanitized.h"
#include "test/shared_memory.h"

namespace riffle::survivors_test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kNodes = 8;
constexpr int kTimeoutS = 2;  // RIFFLE_PEER_TIMEOUT
constexpr int kCalls = kIsSanitized ? 40 : 400;
constexpr std::size_t kCount = kIsSanitized ? 20'000 : 100'000;
constexpr int kOutstanding = 4;
// Calls that wait until the test has done what it does to the nodes, however busy the machine is.
constexpr int kAfterwards = 12;

struct Shared {
  Handle handles[kNodes];
  std::atomic<int> listening, connected, finished[kNodes];
  std::atomic<bool> is_done[kNodes];
  std::atomic<bool> may_end;
  std::atomic<std::int64_t> longest_us[kNodes];  // between two results
  char error[kNodes][1024];
  int errors[kNodes];
  float results[kNodes][kCalls];  // first element
  bool is_wrong[kNodes];          // not the same in all elements
};

std::int64_t micros(Clock::duration d) {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

class SurvivorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("RIFFLE_SOCKET_IFNAME", "=lo", 1);
    setenv("RIFFLE_COLLNET", "on", 1);
    setenv("RIFFLE_LOG", "warn", 1);
    setenv("RIFFLE_ON_LOSS", "continue", 1);
    setenv("RIFFLE_PEER_TIMEOUT", std::to_string(kTimeoutS).c_str(), 1);
    reload_config();
  }
  void TearDown() override {
    for (const pid_t p : pids_) {
      kill(p, SIGKILL);
      waitpid(p, nullptr, 0);
    }
    unsetenv("RIFFLE_ON_LOSS");
    reload_config();
  }

  void start(bool in_place) {
    for (int r = 0; r < kNodes; ++r) {
      const pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        node(r, in_place);
        shared_->is_done[r] = true;
        _exit(0);
      }
      pids_.push_back(pid);
    }
  }

  void give_up(int rank, const std::string& why) {
    std::strncpy(shared_->error[rank], why.c_str(), sizeof shared_->error[rank] - 1);
    ++shared_->errors[rank];
  }

  // What node r contributes to a call: sums of any nodes tell who is in them.
  static float input(int rank, int call) {
    return static_cast<float>((1 << rank) + call % 7 * 256);
  }

  void node(int rank, bool in_place) {
    Result<coll::Listener*> l = coll::listen(options_from(config()).transport, 0,
                                             testing::forked_job(), &shared_->handles[rank]);
    if (!l) return give_up(rank, l.status().message());
    ++shared_->listening;
    while (shared_->listening < kNodes) std::this_thread::sleep_for(1ms);
    std::vector<const Handle*> handles;
    for (const Handle& h : shared_->handles) handles.push_back(&h);
    Result<coll::Communicator*> c =
        coll::connect(handles, rank, *l, options_from(config()).collective);
    coll::close(*l);
    if (!c) return give_up(rank, c.status().message());
    ++shared_->connected;
    while (rank == idle_) std::this_thread::sleep_for(1s);
    work(rank, *c, in_place);
    coll::close(*c);
  }

  void work(int rank, coll::Communicator* c, bool in_place) {
    std::vector<float> send[kOutstanding], recv[kOutstanding];
    coll::Request* requests[kOutstanding] = {};
    const auto end_with = [&](const Status& why) {  // as NCCL: memory is deregistered, then goes
      for (int i = 0; i < kOutstanding; ++i) {
        coll::fence(c, send[i].data(), kCount * sizeof(float));
        coll::fence(c, recv[i].data(), kCount * sizeof(float));
      }
      give_up(rank, why.message());
    };
    auto last = Clock::now();
    for (int call = 0; call < kCalls + kOutstanding; ++call) {
      const int slot = call % kOutstanding;
      if (call >= kOutstanding) {
        while (true) {
          const Result<bool> done = coll::test(requests[slot], nullptr);
          if (!done) return end_with(done.status());
          if (*done) break;
          std::this_thread::sleep_for(20us);
        }
        const int over = call - kOutstanding;
        shared_->results[rank][over] = recv[slot][0];
        for (const float x : recv[slot]) shared_->is_wrong[rank] |= x != recv[slot][0];
        ++shared_->finished[rank];
        const auto now = Clock::now();
        shared_->longest_us[rank] =
            std::max<std::int64_t>(shared_->longest_us[rank], micros(now - last));
        last = now;
      }
      if (call >= kCalls) continue;
      while (call >= kCalls - kAfterwards && !shared_->may_end) std::this_thread::sleep_for(1ms);
      send[slot].assign(kCount, input(rank, call));
      recv[slot] = send[slot];
      const void* from = in_place ? recv[slot].data() : send[slot].data();
      while (true) {
        Result<coll::Request*> q =
            coll::all_reduce(c, from, recv[slot].data(), kCount, type_, ReduceOp::kSum);
        if (!q) return end_with(q.status());
        requests[slot] = *q;
        if (*q != nullptr) break;
        std::this_thread::sleep_for(20us);
      }
    }
  }

  // The error of a node says that too few are left, and which ones are missing. (If a connection
  // breaks before the last word of one that ended for the same reason is read, that one, too.)
  void expect_cut_off(int node, const std::vector<int>& missing) {
    const std::string error = shared_->error[node];
    EXPECT_EQ(error.find("excluded or cut off: only "), 0u) << node << ": " << error;
    EXPECT_NE(error.find(" of 8 nodes "), std::string::npos) << node << ": " << error;
    const std::string names = error.substr(std::min(error.find("(lost node "), error.size()));
    for (const int m : missing) {
      const std::string number = std::to_string(m);
      const auto has = [&](const std::string& text) { return names.find(text) != names.npos; };
      EXPECT_TRUE(has("node " + number + ": ") || has(" " + number + ",") ||
                  has(" " + number + ")"))
          << node << ": " << error;
    }
  }

  // No agreement of the others gets between, however busy the machine is.
  void kill_at_once(const std::vector<int>& nodes) {
    for (const int r : nodes) ASSERT_EQ(setpgid(pids_[r], pids_[nodes[0]]), 0);
    kill(-pids_[nodes[0]], SIGKILL);
    shared_->may_end = true;
  }

  void signal_one(int node, int signal) {
    kill(pids_[node], signal);
    shared_->may_end = true;
  }

  void wait_until_connected() {
    const auto deadline = Clock::now() + 30s;
    while (shared_->connected < kNodes && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(shared_->connected, kNodes);
  }

  void wait_for_calls(int n) {
    const auto deadline = Clock::now() + 30s;
    for (int r = 0; r < kNodes; ++r) {
      while (shared_->finished[r] < n && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
      ASSERT_GE(shared_->finished[r], n) << "node " << r << ": " << shared_->error[r];
    }
  }

  // All but the lost ones finish every call; each result is the sum over all nodes or the scaled
  // one over the survivors, the same everywhere.
  void expect_survivors(const std::set<int>& lost, Clock::duration limit, int least_full = 11) {
    const auto deadline = Clock::now() + limit;
    for (int r = 0; r < kNodes; ++r) {
      if (lost.count(r) > 0) continue;
      while (!shared_->is_done[r] && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(shared_->is_done[r]) << "node " << r << " after " << shared_->finished[r];
      EXPECT_EQ(shared_->errors[r], 0) << "node " << r << ": " << shared_->error[r];
      EXPECT_EQ(shared_->finished[r], kCalls) << "node " << r;
      EXPECT_FALSE(shared_->is_wrong[r]) << "node " << r;
    }
    int full = 0, scaled = 0;
    for (int call = 0; call < kCalls; ++call) {
      const int first = lost.count(0) > 0 ? (lost.count(1) > 0 ? 2 : 1) : 0;
      const float got = shared_->results[first][call];
      float all = 0, left = 0;
      std::set<float> possible;
      for (int r = 0; r < kNodes; ++r) all += input(r, call);
      // They may be lost one after the other, in any order.
      std::vector<std::set<int>> sides = {{}};
      for (const int x : lost) {
        for (std::size_t i = sides.size(); i > 0; --i) {
          sides.push_back(sides[i - 1]);
          sides.back().insert(x);
        }
      }
      for (const auto& gone : sides) {
        left = 0;
        for (int r = 0; r < kNodes; ++r) left += gone.count(r) > 0 ? 0 : input(r, call);
        possible.insert(left *
                        static_cast<float>(kNodes / static_cast<double>(kNodes - gone.size())));
      }
      EXPECT_TRUE(got == all || possible.count(got) > 0) << "call " << call << ": " << got;
      full += got == all;
      scaled += got != all;
      for (int r = 0; r < kNodes; ++r) {
        if (lost.count(r) == 0) {
          EXPECT_EQ(shared_->results[r][call], got) << "node " << r << " call " << call;
        }
      }
    }
    EXPECT_GE(full, least_full);
    EXPECT_GE(scaled, kAfterwards);
    std::int64_t longest = 0;
    for (int r = 0; r < kNodes; ++r) {
      if (lost.count(r) == 0) longest = std::max<std::int64_t>(longest, shared_->longest_us[r]);
    }
    std::printf("%d full sums, %d scaled; longest pause between two results %.1f ms\n", full,
                scaled, static_cast<double>(longest) / 1e3);
  }

  DataType type_ = DataType::kFloat32;
  int idle_ = -1;  // a node that connects and never calls
  SharedMemory<Shared> shared_;
  std::vector<pid_t> pids_;
};

TEST_F(SurvivorsTest, OneIsKilled) {
  start(false);
  wait_for_calls(20);
  signal_one(5, SIGKILL);
  expect_survivors({5}, 60s);
}

TEST_F(SurvivorsTest, OneIsKilledWhileCallsWorkInPlace) {
  start(true);
  wait_for_calls(20);
  signal_one(7, SIGKILL);
  expect_survivors({7}, 60s);
}

TEST_F(SurvivorsTest, TheCoordinatorIsKilledAndThenTheNextOne) {
  start(true);
  wait_for_calls(20);
  kill(pids_[0], SIGKILL);
  std::this_thread::sleep_for(3ms);
  signal_one(1, SIGKILL);
  expect_survivors({0, 1}, 60s);
}

TEST_F(SurvivorsTest, OneIsStoppedAndWakesUpWhenItIsTooLate) {
  start(false);
  wait_for_calls(20);
  signal_one(3, SIGSTOP);
  expect_survivors({3}, 60s);
  kill(pids_[3], SIGCONT);
  const auto deadline = Clock::now() + 10s;
  while (!shared_->is_done[3] && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(shared_->is_done[3]);
  EXPECT_EQ(shared_->errors[3], 1);
  EXPECT_NE(std::string(shared_->error[3]).find("excluded"), std::string::npos)
      << shared_->error[3];
  std::printf("node 3 says: %s\n", shared_->error[3]);
}

// As a scheduler suspends a whole job: nobody is lost, however long it takes.
TEST_F(SurvivorsTest, ASuspendedJobGoesOnWithAllNodes) {
  setenv("RIFFLE_PEER_TIMEOUT", "1", 1);
  reload_config();
  start(false);
  wait_for_calls(20);
  for (const pid_t p : pids_) kill(p, SIGSTOP);
  std::this_thread::sleep_for(1500ms);
  for (const pid_t p : pids_) kill(p, SIGCONT);
  shared_->may_end = true;
  wait_for_calls(kCalls);
  for (int r = 0; r < kNodes; ++r) {
    EXPECT_EQ(shared_->errors[r], 0) << "node " << r << ": " << shared_->error[r];
    for (int call = 0; call < kCalls; ++call) {
      float all = 0;
      for (int i = 0; i < kNodes; ++i) all += input(i, call);
      ASSERT_EQ(shared_->results[r][call], all) << "node " << r << " call " << call;
    }
  }
}

// Who was lost; and afterwards nodes are still called by their own numbers, and calls by terms.
TEST_F(SurvivorsTest, TheRecordAndTheTraceTellOfTheLoss) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / ("losses" + std::to_string(getpid()));
  fs::create_directories(folder);
  setenv("RIFFLE_RECORD", (folder / "%p.jsonl").c_str(), 1);
  setenv("RIFFLE_TRACE", "1", 1);
  reload_config();
  idle_ = 3;
  start(false);
  wait_until_connected();
  signal_one(3, SIGKILL);
  expect_survivors({3}, 60s, 0);
  unsetenv("RIFFLE_RECORD");
  unsetenv("RIFFLE_TRACE");
  int losses = 0, traced_losses = 0, with_calls_after = 0;
  std::map<int, std::uint64_t> last;  // whose contribution was the last one
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    std::ifstream in(file.path());
    std::map<int, std::uint64_t> of_file;
    bool has_calls_after = false;
    for (std::string text; std::getline(in, text);) {
      const auto line = nlohmann::json::parse(text, nullptr, false);
      if (!line.is_object()) continue;  // the killed one's last
      if (line["type"] == "event") traced_losses += line["kind"] == "loss";
      if (line["type"] == "spans") {
        for (const auto& span : line["spans"]) {
          const bool is_after = span[1] > 0;  // its term
          has_calls_after |= is_after && span[0] == 0;
          EXPECT_FALSE(is_after && span[6] == 3) << "a span with a node that is lost: " << span;
        }
      }
      if (line["type"] == "loss") {
        ++losses;
        EXPECT_EQ(line["lost"][0]["rank"], 3) << text;
        EXPECT_EQ(line["left"], kNodes - 1) << text;
        EXPECT_GT(line["recovery_ms"], 0) << text;
      }
      if (line["type"] != "sample") continue;
      for (const auto& link : line["links"]) of_file[link["peer"]] = link["last"];
    }
    for (const auto& [peer, n] : of_file) last[peer] += n;
    with_calls_after += has_calls_after;
  }
  fs::remove_all(folder);
  EXPECT_EQ(losses, kNodes - 1);
  EXPECT_EQ(traced_losses, kNodes - 1);
  EXPECT_EQ(with_calls_after, kNodes - 1);
  EXPECT_EQ(last[3], 0u) << "node 3 never called";
  EXPECT_GT(last[7], 0u);
}

TEST_F(SurvivorsTest, IntegersCannotBeScaledAndEndTheJobOnEverySurvivor) {
  type_ = DataType::kInt32;
  start(false);
  wait_for_calls(20);
  signal_one(6, SIGKILL);
  const auto deadline = Clock::now() + 20s;
  for (int r = 0; r < kNodes; ++r) {
    if (r == 6) continue;
    while (!shared_->is_done[r] && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(shared_->errors[r], 1) << "node " << r;
    const std::string error = shared_->error[r];
    EXPECT_NE(error.find("sum of int32"), std::string::npos) << error;
    EXPECT_NE(error.find("RIFFLE_RESCALE"), std::string::npos) << error;
  }
}

TEST_F(SurvivorsTest, FourOfEightStopTheSideWithoutTheLowest) {
  start(false);
  wait_for_calls(20);
  for (int r = 0; r < 4; ++r) signal_one(r, SIGSTOP);
  const auto deadline = Clock::now() + 20s;
  for (int r = 4; r < kNodes; ++r) {
    while (!shared_->is_done[r] && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(shared_->errors[r], 1) << "node " << r;
    expect_cut_off(r, {0, 1, 2, 3});
  }
}

// A rack of bench/profiles/racks8.toml, at once.
TEST_F(SurvivorsTest, FourOfEightAreKilledAndTheSideWithTheLowestGoesOn) {
  start(true);
  wait_for_calls(20);
  kill_at_once({1, 3, 5, 7});
  expect_survivors({1, 3, 5, 7}, 60s);
}

TEST_F(SurvivorsTest, FourOfEightAreKilledAndTheSideWithoutTheLowestEnds) {
  start(false);
  wait_for_calls(20);
  kill_at_once({0, 2, 4, 6});
  const auto deadline = Clock::now() + 20s;
  for (const int r : {1, 3, 5, 7}) {
    while (!shared_->is_done[r] && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(shared_->errors[r], 1) << "node " << r;
    expect_cut_off(r, {0, 2, 4, 6});
  }
}

}  // namespace
}  // namespace riffle::survivors_test
