// Whole communicators over real TCP on loopback, N of them in one process: connect, exactness of
// the same random calls as the in-memory test's, early and late closers, aborts, leaks.
#include <dirent.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "plugin/collective/coll_service.h"
#include "plugin/collective/request.h"
#include "plugin/config/config.h"
#include "plugin/config/log.h"
#include "plugin/entry/options.h"
#include "test/own_job.h"
#include "test/plugin/kernels/numbers.h"
#include "test/sanitized.h"
#include "topology/base/time.h"

namespace riffle::communicator_test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Sanitizers make everything several times slower; they need fewer repetitions to see the same.
class Cluster {
 public:
  explicit Cluster(int nodes, const CollectiveOptions& options = options_from(config()).collective)
      : comms(nodes, nullptr) {
    std::vector<Handle> handles(nodes);
    std::vector<coll::Listener*> listeners(nodes);
    for (int i = 0; i < nodes; ++i) {
      Result<coll::Listener*> l =
          coll::listen(options_from(config()).transport, 0, testing::own_job(), &handles[i]);
      if (!l) throw std::runtime_error(l.status().message());
      listeners[i] = *l;
    }
    std::vector<const Handle*> pointers;
    for (const Handle& h : handles) pointers.push_back(&h);
    std::vector<std::thread> threads;
    errors.resize(nodes);
    for (int i = 0; i < nodes; ++i) {
      threads.emplace_back([&, i] {
        Result<coll::Communicator*> c = coll::connect(pointers, i, listeners[i], options);
        if (c) {
          comms[i] = *c;
        } else {
          errors[i] = c.status().message();
        }
        coll::close(listeners[i]);
      });
    }
    for (std::thread& t : threads) t.join();
  }
  ~Cluster() {
    for (coll::Communicator* c : comms) {
      if (c != nullptr) coll::close(c);
    }
  }
  void close(int i) { coll::close(std::exchange(comms[i], nullptr)); }

  std::vector<coll::Communicator*> comms;
  std::vector<std::string> errors;
};

// Waits for a request; empty, or the error.
std::string wait(coll::Request* request, Clock::duration limit = 20s) {
  const auto deadline = Clock::now() + limit;
  while (Clock::now() < deadline) {
    const Result<bool> done = coll::test(request, nullptr);
    if (!done) return done.status().message();
    if (*done) return "";
    std::this_thread::sleep_for(20us);
  }
  return "never ended";
}

std::size_t entries(const char* directory) {
  std::size_t n = 0;
  DIR* d = opendir(directory);
  while (readdir(d) != nullptr) ++n;
  closedir(d);
  return n;
}

// All-reduces `calls` buffers at once on all nodes; sums of small integers are exact in float.
void all_reduce_and_check(Cluster& cluster, std::size_t count, int calls, bool in_place) {
  const int nodes = static_cast<int>(cluster.comms.size());
  std::vector<std::vector<std::vector<float>>> send(nodes), recv(nodes);
  std::vector<coll::Request*> requests;
  for (int r = 0; r < nodes; ++r) {
    for (int k = 0; k < calls; ++k) {
      std::vector<float> x(count);
      for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>((i * 7 + r * 3 + k) % 101);
      recv[r].push_back(in_place ? x : std::vector<float>(count));
      send[r].push_back(std::move(x));
    }
  }
  for (int k = 0; k < calls; ++k) {
    for (int r = 0; r < nodes; ++r) {
      const void* from = in_place ? recv[r][k].data() : send[r][k].data();
      Result<coll::Request*> q = coll::all_reduce(cluster.comms[r], from, recv[r][k].data(), count,
                                                  DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(q) << q.status().message();
      ASSERT_NE(*q, nullptr);
      requests.push_back(*q);
    }
  }
  for (coll::Request* q : requests) ASSERT_EQ(wait(q), "");
  for (int k = 0; k < calls; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      float expect = 0;
      for (int r = 0; r < nodes; ++r) expect += send[r][k][i];
      for (int r = 0; r < nodes; ++r) {
        ASSERT_EQ(recv[r][k][i], expect) << "node " << r << " call " << k << " element " << i;
      }
    }
  }
}

class CommunicatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("RIFFLE_SOCKET_IFNAME", "=lo", 1);
    setenv("RIFFLE_COLLNET", "on", 1);
    setenv("RIFFLE_PEER_TIMEOUT", "3", 1);
    setenv("RIFFLE_LOG", "warn", 1);
    reload_config();
  }
};

TEST_F(CommunicatorTest, TwoHundredAllReducesOverTcp) {
  std::mt19937_64 random(1);
  int done = 0;
  for (const int nodes : {2, 3, 4, 5, 8}) {
    Cluster cluster(nodes);
    for (const std::string& e : cluster.errors) ASSERT_EQ(e, "");
    for (int i = 0; i < cases(200) / 5; ++i, ++done) {
      const std::size_t sizes[] = {0, 1, 3, 1009, 65536, 262144 + 1, random() % 300000};
      all_reduce_and_check(cluster, sizes[random() % 7], 1 + static_cast<int>(random() % 4),
                           random() % 2 == 0);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(done, cases(200));
}

TEST_F(CommunicatorTest, SixtyFourInFlightThenRefused) {
  Cluster cluster(2);
  std::vector<float> data(64 * 100, 1);
  std::vector<coll::Request*> requests;
  // Only node 0 posts, so nothing can finish.
  for (int i = 0; i < coll::kMaxRequests; ++i) {
    Result<coll::Request*> q = coll::all_reduce(cluster.comms[0], &data[i * 100], &data[i * 100],
                                                100, DataType::kFloat32, ReduceOp::kSum);
    ASSERT_TRUE(q && *q != nullptr);
    requests.push_back(*q);
  }
  Result<coll::Request*> one_more = coll::all_reduce(cluster.comms[0], data.data(), data.data(),
                                                     100, DataType::kFloat32, ReduceOp::kSum);
  ASSERT_TRUE(one_more);
  EXPECT_EQ(*one_more, nullptr);
  std::vector<float> other(100, 2);
  for (int i = 0; i < coll::kMaxRequests; ++i) {
    std::fill(other.begin(), other.end(), 2);
    Result<coll::Request*> q = coll::all_reduce(cluster.comms[1], other.data(), other.data(), 100,
                                                DataType::kFloat32, ReduceOp::kSum);
    ASSERT_TRUE(q && *q != nullptr);
    ASSERT_EQ(wait(*q), "");
  }
  for (coll::Request* q : requests) EXPECT_EQ(wait(q), "");
  EXPECT_EQ(data, std::vector<float>(64 * 100, 3));
}

TEST_F(CommunicatorTest, ClosingAtDifferentTimesIsNoError) {
  Cluster cluster(4);
  all_reduce_and_check(cluster, 100000, 3, true);
  for (int r = 0; r < 4; ++r) {
    cluster.close(r);
    std::this_thread::sleep_for(300ms);
  }
}

TEST_F(CommunicatorTest, ACallAfterAPeerLeftFailsAndSaysWho) {
  Cluster cluster(3);
  cluster.close(1);
  std::this_thread::sleep_for(200ms);
  std::vector<float> data(10, 1);
  Result<coll::Request*> q = coll::all_reduce(cluster.comms[0], data.data(), data.data(), 10,
                                              DataType::kFloat32, ReduceOp::kSum);
  ASSERT_TRUE(q && *q != nullptr);
  const std::string error = wait(*q, 5s);
  EXPECT_NE(error.find("node 1"), std::string::npos) << error;
}

// Heartbeats go on: without the knob the others would wait for ever.
TEST_F(CommunicatorTest, ACallThatOneNodeDoesNotMakeIsAnErrorThatNamesItOnceItStalls) {
  setenv("RIFFLE_STALL_S", "1", 1);
  for (const char* plan : {"direct", "ring", "tree", "double-tree"}) {
    setenv("RIFFLE_PLAN", plan, 1);
    reload_config();
    Cluster cluster(7);
    for (const std::string& e : cluster.errors) ASSERT_EQ(e, "");
    std::vector<std::vector<float>> data(7, std::vector<float>(100'000, 1));
    std::vector<coll::Request*> requests;
    for (const int node : {0, 1, 2, 3, 4, 6}) {
      Result<coll::Request*> q =
          coll::all_reduce(cluster.comms[node], data[node].data(), data[node].data(), 100'000,
                           DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(q && *q != nullptr);
      requests.push_back(*q);
    }
    for (coll::Request* q : requests) {
      const std::string error = wait(q, 6s);
      EXPECT_NE(error.find("RIFFLE_STALL_S"), std::string::npos) << plan << ": " << error;
      EXPECT_NE(error.find("waits for node 5"), std::string::npos) << plan << ": " << error;
    }
  }
  unsetenv("RIFFLE_STALL_S");
  unsetenv("RIFFLE_PLAN");
}

// Without the knob the log alone tells, each time, and the sum comes in the end.
TEST_F(CommunicatorTest, ACallThatOneNodeMakesLateIsAWarningThatNamesItWhileItStalls) {
  constexpr int kNodes = 5;
  for (const char* on_loss : {"error", "continue"}) {
    setenv("RIFFLE_ON_LOSS", on_loss, 1);
    reload_config();
    CollectiveOptions options = options_from(config()).collective;
    EXPECT_EQ(options.session.stall_warning_ns, 60 * kSecond);
    options.session.stall_warning_ns = kSecond;
    Cluster cluster(kNodes, options);
    for (const std::string& e : cluster.errors) ASSERT_EQ(e, "");
    std::vector<std::vector<float>> data(kNodes, std::vector<float>(1000, 1));
    std::vector<coll::Request*> requests;
    const auto call = [&](int node) {
      Result<coll::Request*> q =
          coll::all_reduce(cluster.comms[node], data[node].data(), data[node].data(), 1000,
                           DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(q && *q != nullptr);
      requests.push_back(*q);
    };
    float sum = 1;
    for (int round = 0; round < 2; ++round) {
      ::testing::internal::CaptureStderr();
      for (const int node : {0, 1, 2, 4}) call(node);
      std::this_thread::sleep_for(3500ms);
      const std::string log = ::testing::internal::GetCapturedStderr();
      call(3);
      for (coll::Request* q : requests) EXPECT_EQ(wait(q), "") << on_loss;
      requests.clear();
      sum *= kNodes;
      for (const auto& vector : data) EXPECT_EQ(vector, std::vector<float>(1000, sum));
      EXPECT_NE(log.find("WARN a collective has not moved for 1 s: node "), std::string::npos)
          << on_loss << ", " << round << ": " << log;
      EXPECT_NE(log.find(" waits for node 3 "), std::string::npos) << log;
    }
  }
  unsetenv("RIFFLE_ON_LOSS");
}

// All others have closed while it had nothing to do; what it has scaled is not begun once more.
TEST_F(CommunicatorTest, TheOnlyOneLeftGoesOnWithItsOwnScaled) {
  for (const int nodes : {2, 3}) {
    setenv("RIFFLE_ON_LOSS", "continue", 1);
    reload_config();
    Cluster cluster(nodes);
    for (const std::string& e : cluster.errors) ASSERT_EQ(e, "");
    for (int node = nodes; node-- > 1;) cluster.close(node);
    std::this_thread::sleep_for(300ms);
    const std::vector<float> mine(1000, 3);
    for (int call = 0; call < 3; ++call) {
      for (const bool is_in_place : {false, true}) {
        std::vector<float> result = is_in_place ? mine : std::vector<float>(1000, -1);
        Result<coll::Request*> q =
            coll::all_reduce(cluster.comms[0], is_in_place ? result.data() : mine.data(),
                             result.data(), 1000, DataType::kFloat32, ReduceOp::kSum);
        ASSERT_TRUE(q && *q != nullptr) << q.status().message();
        ASSERT_EQ(wait(*q), "");
        EXPECT_EQ(result, std::vector<float>(1000, 3.0F * static_cast<float>(nodes))) << call;
      }
    }
  }
  unsetenv("RIFFLE_ON_LOSS");
}

// A part of a reduce-scatter in which it owns nothing is over for a node when it has sent what it
// has.
TEST_F(CommunicatorTest, ANodeThatOwnsNothingOfAReduceScatterMayLeaveBeforeTheOthersCallIt) {
  constexpr std::size_t kBlock = 40'000;  // floats of each node
  Cluster cluster(3);
  std::vector<float> window(2 * kBlock), results[2];
  for (std::size_t i = 0; i < window.size(); ++i) window[i] = static_cast<float>(i % 89);
  const auto post = [&](int node, float* recv) {
    return coll::reduce_scatter(cluster.comms[node], window.data(), recv, kBlock * sizeof(float), 0,
                                2 * kBlock * sizeof(float), DataType::kFloat32, ReduceOp::kSum);
  };
  Result<coll::Request*> of_none = post(2, nullptr);
  ASSERT_TRUE(of_none && *of_none != nullptr);
  ASSERT_EQ(wait(*of_none), "");
  cluster.close(2);
  std::this_thread::sleep_for(200ms);
  std::vector<coll::Request*> requests;
  for (int node = 0; node < 2; ++node) {
    results[node].resize(kBlock);
    Result<coll::Request*> request = post(node, results[node].data());
    ASSERT_TRUE(request && *request != nullptr);
    requests.push_back(*request);
  }
  for (coll::Request* request : requests) ASSERT_EQ(wait(request), "");
  for (std::size_t i = 0; i < window.size(); ++i) {
    ASSERT_EQ(results[i / kBlock][i % kBlock], 3 * window[i]) << i;
  }
  // A further one it has no part in, which is an error when the peer timeout is over.
  Result<coll::Request*> further = post(0, results[0].data());
  ASSERT_TRUE(further && *further != nullptr);
  EXPECT_NE(wait(*further, 6s).find("node 2"), std::string::npos);
}

TEST_F(CommunicatorTest, NodesThatCallDifferentCollectivesAreToldApart) {
  Cluster cluster(2);
  std::vector<float> a(1000, 1), b(1000, 1);
  Result<coll::Request*> p = coll::all_reduce(cluster.comms[0], a.data(), a.data(), 1000,
                                              DataType::kFloat32, ReduceOp::kSum);
  Result<coll::Request*> q = coll::all_reduce(cluster.comms[1], b.data(), b.data(), 999,
                                              DataType::kFloat32, ReduceOp::kSum);
  ASSERT_TRUE(p && q);
  const std::string error = wait(*p, 5s) + wait(*q, 5s);
  EXPECT_NE(error.find("same collectives in the same order"), std::string::npos) << error;
}

TEST_F(CommunicatorTest, FenceFreesTheMemoryAndPeersLearnOfTheAbort) {
  constexpr std::size_t kCount = 1 << 20;
  // Outlives the cluster, as no fence takes it away from links that still send.
  std::vector<std::vector<float>> others(2, std::vector<float>(kCount * 8, 1.0f));
  Cluster cluster(3);
  auto region = std::make_unique<std::vector<float>>(kCount * 8, 1.0f);
  std::vector<coll::Request*> survivors;
  for (int k = 0; k < 8; ++k) {
    float* at = region->data() + k * kCount;
    ASSERT_TRUE(
        coll::all_reduce(cluster.comms[0], at, at, kCount, DataType::kFloat32, ReduceOp::kSum));
    float* other = others[0].data() + k * kCount;
    Result<coll::Request*> q = coll::all_reduce(cluster.comms[1], other, other, kCount,
                                                DataType::kFloat32, ReduceOp::kSum);
    ASSERT_TRUE(q);
    survivors.push_back(*q);
  }
  const auto begin = Clock::now();
  coll::fence(cluster.comms[0], region->data(), kCount * 8 * sizeof(float));
  EXPECT_LT(Clock::now() - begin, 100ms);
  region.reset();  // asan watches that nobody touches it any more
  cluster.close(0);
  for (coll::Request* q : survivors) {
    const std::string error = wait(q, 5s);
    EXPECT_NE(error.find("node 0"), std::string::npos) << error;
  }
}

std::mutex lines_mutex;
std::vector<std::string> lines;  // "<NCCL's level> <text>"
void keep_line(int level, unsigned long, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(lines_mutex);
  lines.push_back(std::to_string(level) + " " + text);
}

TEST_F(CommunicatorTest, SteppingAsideIsOneLineOnNodeZeroAndNoError) {
  setenv("RIFFLE_COLLNET", "off", 1);
  setenv("RIFFLE_LOG", "info", 1);
  reload_config();
  { Cluster warm_up(4); }
  std::this_thread::sleep_for(200ms);
  const std::size_t descriptors = entries("/proc/self/fd");
  set_logger(keep_line);
  for (const int nodes : {2, 5}) {
    lines.clear();
    Cluster cluster(nodes);
    for (const std::string& e : cluster.errors) EXPECT_EQ(e, "");
    for (const coll::Communicator* c : cluster.comms) EXPECT_EQ(c, nullptr);
    const std::lock_guard lock(lines_mutex);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0], "3 Riffle: all-reduces of " + std::to_string(nodes) +
                            " nodes stay with NCCL: RIFFLE_COLLNET=off");
  }
  set_logger(nullptr);
  std::this_thread::sleep_for(200ms);
  EXPECT_LE(entries("/proc/self/fd"), descriptors);
}

// Bytes that malloc has given out, in all arenas.
std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::size_t resident_bytes() {
  malloc_trim(0);  // what the allocator keeps for later is in use by no communicator
  std::size_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(CommunicatorTest, CyclesLeaveNothingBehind) {
  for (int i = 0; i < (kIsSanitized ? 5 : 400); ++i)
    Cluster warm_up(2);  // caches of the allocator fill
  std::this_thread::sleep_for(500ms);
  [[maybe_unused]] const std::size_t heap = heap_bytes(), resident = resident_bytes();
  const std::size_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  constexpr int kCycles = kIsSanitized ? 20 : 1000;
  for (int i = 0; i < kCycles; ++i) {
    Cluster cluster(2);
    ASSERT_EQ(cluster.errors[0] + cluster.errors[1], "");
    if (i % 50 == 0) all_reduce_and_check(cluster, 1000, 1, false);
  }
  std::this_thread::sleep_for(500ms);
  EXPECT_LE(entries("/proc/self/fd"), descriptors);
  EXPECT_LE(entries("/proc/self/task"), threads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::printf("heap %zu -> %zu, resident %zu -> %zu bytes\n", heap, heap_bytes(), resident,
              resident_bytes());
  // Half of malloc's smallest block (32 bytes) a cycle: no block of each is left behind. What
  // threads cache comes and goes, some 8 kB.
  EXPECT_LT(heap_bytes(), heap + kCycles * 16);
  EXPECT_LT(resident_bytes(), resident + (4u << 20));
#endif
}

}  // namespace
}  // namespace riffle::communicator_test
