// Processes are killed or stopped, or their links go down, while a communicator connects, with the
// shipped plugin over TCP: one or two of eight, at moments from before the first connection to
// after the last. Every survivor returns from connect in time, all with the same outcome, and a
// message that names who was lost and nobody else; nobody hangs when it closes. (Moments are swept
// exactly in test/simulation/connect_losses_test.)
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "lab/cluster/cluster.h"
#include "test/blamed_nodes.h"
#include "test/nccl_host/plugin_under_test.h"
#include "test/shared_memory.h"

namespace riffle::host::connect_losses_plugin_test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRanks = 8;
constexpr std::size_t kCount = 4096;
constexpr double kMarginS = 1.5;  // beyond the timeout: half a second is connect's own

struct Case {
  std::vector<int> victims;
  int signal_number = SIGKILL;  // 0: the link goes down
  int delay_us = 0;             // from the moment that all are about to connect
  std::vector<std::pair<const char*, const char*>> knobs = {};
  int timeout_s = 2;
};

struct Shared {
  std::atomic<int> outcome[kRanks];  // of connect: 0 none, 1 connected, 2 an error
  std::atomic<bool> is_over[kRanks], works[kRanks];
  double seconds[kRanks];
};

class ConnectLosses : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int& fd : logs_) ASSERT_GE(fd = memfd_create("log", 0), 0);
  }
  void TearDown() override {
    for (const int fd : logs_) close(fd);
  }

  Status work(Bootstrap& b, const Case& c) {
    dup2(logs_[static_cast<std::size_t>(b.rank())], STDERR_FILENO);
    if (cluster_) setenv("RIFFLE_SOCKET_IFNAME", "eth0", 1);
    set_plugin_environment();
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("RIFFLE_PEER_TIMEOUT", std::to_string(c.timeout_s).c_str(), 1);
    setenv("RIFFLE_CONNECT_TIMEOUT", std::to_string(c.timeout_s).c_str(), 1);
    setenv("RIFFLE_OPTIMIZER", "sgd", 1);
    for (const auto& [name, value] : c.knobs) setenv(name, value, 1);
    auto library = PluginLibrary::load(plugin_path(), {});
    if (!library) return library.status();
    CollNetTable& table = *(*library)->collnet();
    void* context = nullptr;
    void* listener = nullptr;
    std::array<std::byte, 128> mine{};
    if (table.init(7, &context) != kSuccess) return internal_error("init");
    if (table.listen(context, 0, mine.data(), &listener) != kSuccess) {
      return internal_error("listen");
    }
    std::vector<std::byte> handles(mine.size() * kRanks);
    if (Status s = b.all_gather(mine.data(), handles.data(), mine.size()); !s) return s;
    std::vector<void*> pointers;
    for (int r = 0; r < kRanks; ++r) {
      pointers.push_back(handles.data() + mine.size() * static_cast<std::size_t>(r));
    }
    if (Status s = b.barrier(); !s) return s;
    if (b.rank() == c.victims[0]) (void)b.note("connecting");
    const auto begin = Clock::now();
    void* comm = nullptr;
    const int result = table.connect(pointers.data(), kRanks, b.rank(), listener, &comm);
    const std::chrono::duration<double> took = Clock::now() - begin;
    shared_->seconds[b.rank()] = took.count();
    shared_->outcome[b.rank()] = result == kSuccess && comm != nullptr ? 1 : 2;
    if (result == kSuccess) table.close_listen(listener);
    if (comm != nullptr) {
      shared_->works[b.rank()] = all_reduces(table, comm);
      if (table.close_coll(comm) != kSuccess) return internal_error("close");
    }
    (void)table.finalize(context);
    (void)b.note("over");
    return Status::ok();
  }

  // A few, with time for a loss between them. False: an error.
  static bool all_reduces(CollNetTable& table, void* comm) {
    std::vector<float> send(kCount, 1), receive(kCount);
    const std::size_t bytes = kCount * sizeof(float);
    void* send_mr = nullptr;
    void* receive_mr = nullptr;
    bool works = table.register_memory(comm, send.data(), bytes, &send_mr) == kSuccess &&
                 table.register_memory(comm, receive.data(), bytes, &receive_mr) == kSuccess;
    for (int i = 0; works && i < 10; ++i) {
      void* request = nullptr;
      works = table.iallreduce(comm, send.data(), receive.data(), kCount,
                               static_cast<int>(DataType::kFloat32), 0, send_mr, receive_mr,
                               &request) == kSuccess;
      for (int done = request == nullptr ? 1 : 0, size = 0; works && done == 0;) {
        works = table.test(request, &done, &size) == kSuccess;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (send_mr != nullptr) (void)table.deregister_memory(comm, send_mr);
    if (receive_mr != nullptr) (void)table.deregister_memory(comm, receive_mr);
    return works;
  }

  void strike(const Case& c, const std::vector<pid_t>& pids) const {
    for (const int v : c.victims) {
      if (c.signal_number != 0) {
        kill(pids[static_cast<std::size_t>(v)], c.signal_number);
      } else {
        set_link(v, "down");
      }
    }
  }
  void set_link(int node, const char* state) const {
    const auto done = cluster_->run(node, {"ip", "link", "set", "eth0", state}, 5000);
    EXPECT_TRUE(done) << done.status().message();
  }

  bool is_victim(const Case& c, int rank) const {
    return std::ranges::find(c.victims, rank) != c.victims.end();
  }

  std::string log_of(int rank) const {
    std::string text(1 << 16, '\0');
    const ssize_t n = pread(logs_[static_cast<std::size_t>(rank)], text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
  }

  // True: the survivors were connected.
  bool run(const Case& c) {
    for (int r = 0; r < kRanks; ++r) {
      shared_->outcome[r] = 0;
      shared_->works[r] = false;
      EXPECT_EQ(ftruncate(logs_[static_cast<std::size_t>(r)], 0), 0);
      lseek(logs_[static_cast<std::size_t>(r)], 0, SEEK_SET);
    }
    LaunchOptions launch_options;
    launch_options.ranks = kRanks;
    launch_options.deadline_ms = 30000;
    std::vector<pid_t> pids;
    const int wait_for = kRanks - (c.signal_number == 0 ? 0 : static_cast<int>(c.victims.size()));
    int over = 0;
    if (cluster_) launch_options.before = [this](int rank) { return cluster_->enter(rank); };
    launch_options.on_started = [&](const std::vector<pid_t>& p) { pids = p; };
    launch_options.on_note = [&](int, const std::string& text) {
      if (text == "connecting") {
        std::this_thread::sleep_for(std::chrono::microseconds(c.delay_us));
        strike(c, pids);
      } else if (++over == wait_for) {
        for (const int v : c.victims) kill(pids[static_cast<std::size_t>(v)], SIGKILL);
      }
    };
    const auto exits = launch(launch_options, [&](Bootstrap& b) { return work(b, c); });
    EXPECT_TRUE(exits.is_ok()) << exits.status().message();
    for (const int v : c.victims) {
      if (c.signal_number == 0) set_link(v, "up");
    }
    int connected = 0, failed = 0;
    std::string all = "\n" + std::to_string(c.delay_us) + " us";
    for (const auto& [name, value] : c.knobs) all += std::string(" ") + name + "=" + value;
    const bool goes_on = std::ranges::any_of(
        c.knobs, [](const auto& knob) { return std::string(knob.second) == "continue"; });
    for (int r = 0; exits && r < kRanks; ++r) {
      all += "\n" + std::to_string(r) + (is_victim(c, r) ? " (victim)" : "") + ": outcome " +
             std::to_string(shared_->outcome[r]) + " in " + std::to_string(shared_->seconds[r]) +
             " s; " + log_of(r);
    }
    for (int r = 0; exits && r < kRanks; ++r) {
      if (c.signal_number == 0) {  // who is cut off lives, too
        EXPECT_NE(shared_->outcome[r], 0) << "rank " << r << all;
        EXPECT_LT(shared_->seconds[r], c.timeout_s + kMarginS) << "rank " << r << all;
      }
      if (is_victim(c, r)) continue;
      EXPECT_EQ((*exits)[static_cast<std::size_t>(r)].code, 0) << "rank " << r << all;
      EXPECT_LT(shared_->seconds[r], c.timeout_s + kMarginS) << "rank " << r << all;
      (shared_->outcome[r] == 1 ? connected : failed) += 1;
      EXPECT_NE(shared_->outcome[r], 0) << "rank " << r << all;
      if (shared_->outcome[r] == 1 && goes_on) {
        EXPECT_TRUE(shared_->works[r]) << "rank " << r << all;
      }
      if (shared_->outcome[r] == 1 && (shared_->works[r] || goes_on)) continue;
      const std::set<int> blamed = blamed_in(log_of(r));
      EXPECT_FALSE(blamed.empty()) << "rank " << r << all;
      for (const int node : blamed) {
        EXPECT_TRUE(is_victim(c, node)) << "rank " << r << " blames node " << node << all;
      }
    }
    EXPECT_TRUE(connected == 0 || failed == 0) << "outcomes differ" << all;
    return connected > 0;
  }

  // Moments from 0 up, closer to each other where more happens.
  void sweep(Case c, const std::vector<int>& moments_us) {
    static const std::vector<std::pair<const char*, const char*>> kKnobs[] = {
        {{"RIFFLE_ON_LOSS", "error"}},
        {{"RIFFLE_ON_LOSS", "continue"}},
        {{"RIFFLE_ON_LOSS", "continue"}, {"RIFFLE_SYNC", "ds_sync"}}};
    static const std::vector<int> kVictims[] = {{0}, {1}, {5}, {7, 3}, {0, 6}, {1, 2}};
    int connected = 0;
    std::size_t i = 0;
    for (const int moment_us : moments_us) {
      c.delay_us = moment_us;
      c.victims = kVictims[i % std::size(kVictims)];
      for (const auto& knob : kKnobs[i++ % std::size(kKnobs)]) c.knobs.push_back(knob);
      connected += run(c);
      c.knobs.clear();
      if (HasFailure()) return;
    }
    std::printf("%d of %zu times the others were connected\n", connected, moments_us.size());
  }

  std::array<int, kRanks> logs_{};
  std::unique_ptr<cluster::Cluster> cluster_;  // where links go down
  SharedMemory<Shared> shared_;
};

TEST_F(ConnectLosses, Killed) {
  RIFFLE_NEEDS_PLUGIN();
  sweep({.signal_number = SIGKILL}, {0, 2000, 4000, 5000, 8000, 15000, 60000, 400000});
}

TEST_F(ConnectLosses, Stopped) {
  RIFFLE_NEEDS_PLUGIN();
  sweep({.signal_number = SIGSTOP}, {0, 4000, 6000, 11000, 30000, 300000});
}

TEST_F(ConnectLosses, CutOff) {
  RIFFLE_NEEDS_PLUGIN();
  if (Status s = cluster::namespaces_allowed(); !s) GTEST_SKIP() << s.message();
  auto made = cluster::Cluster::create(cluster::even_profile(kRanks, 0));
  ASSERT_TRUE(made) << made.status().message();
  cluster_ = std::move(*made);
  sweep({.signal_number = 0}, {0, 2000, 6000, 15000, 120000, 300000});
}

// Eight nodes probe for some two seconds.
TEST_F(ConnectLosses, WhileTheyProbe) {
  RIFFLE_NEEDS_PLUGIN();
  setenv("RIFFLE_PROBE", "on", 1);
  sweep({.signal_number = SIGKILL, .timeout_s = 6}, {100'000, 1'500'000});
  sweep({.signal_number = SIGSTOP, .timeout_s = 6}, {100'000, 900'000});
  unsetenv("RIFFLE_PROBE");
}

}  // namespace
}  // namespace riffle::host::connect_losses_plugin_test
