// RIFFLE_ON_LOSS=continue beside relaxed and sparse modes, with the shipped plugin: eight processes
// over TCP, of which one or two are killed or stopped in mid-step, and which end when each is
// through, at different times. (What each call computes is test/simulation/mode_losses_test's to
// judge.)
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "test/nccl_host/plugin_under_test.h"
#include "test/shared_memory.h"

namespace riffle::host::mode_losses_plugin_test {
namespace {

constexpr auto kF32 = DataType::kFloat32;
constexpr int kRanks = 8;
constexpr int kMostSteps = 600;
constexpr std::size_t kCount = 60'000;

struct Step {
  double asked, got;       // over all elements: own gradients; result
  std::uint64_t hash;      // of the result
  std::uint32_t not_zero;  // elements of the result
};
struct Shared {
  Step steps[kRanks][kMostSteps];
  bool has_error[kRanks];
};

struct Case {
  std::vector<std::pair<const char*, const char*>> knobs;
  std::vector<int> victims;
  int signal_number = SIGKILL;
  int at_step = 200;  // the mode has begun: its agreement takes time, whatever a step takes
  int steps = 340;
  int uneven_us = 0;    // a step takes so much longer on each rank than on the one before
  int lives_on_ms = 0;  // a process, when its communicator is destroyed
  const char* on_loss = "continue";
};

std::uint64_t hash_of(const std::vector<float>& data) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const float x : data) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    h = (h ^ bits) * 0x100000001b3u;
  }
  return h;
}

class ModeLosses : public ::testing::Test {
 protected:
  Status work(Bootstrap& b, const Case& c) {
    set_plugin_environment();
    setenv("RIFFLE_ON_LOSS", c.on_loss, 1);
    setenv("RIFFLE_PEER_TIMEOUT", "1", 1);
    setenv("RIFFLE_EPOCH", "4", 1);
    setenv("RIFFLE_WARMUP_STEPS", "2", 1);
    setenv("RIFFLE_OPTIMIZER", "sgd", 1);
    for (const auto& [name, value] : c.knobs) setenv(name, value, 1);
    auto library = PluginLibrary::load(plugin_path(), {});
    if (!library) return library.status();
    Options options;
    options.channels = 1;
    options.algorithm = Algorithm::kCollNetChain;
    options.deadline_ms = 20000;
    auto comm = Communicator::create(**library, b, options);
    if (!comm) return comm.status();
    // A job's buckets stay where they are.
    std::vector<float> send(kCount), receive(kCount);
    for (int step = 0; step < c.steps; ++step) {
      if (c.uneven_us > 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(c.uneven_us * b.rank()));
      }
      if (step == c.at_step && !c.victims.empty() && b.rank() == c.victims[0]) {
        if (Status s = b.note("running"); !s) return s;
      }
      Step& out = shared_->steps[b.rank()][step];
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto x = static_cast<float>((i * 2654435761u + static_cast<unsigned>(step) * 977u +
                                           static_cast<unsigned>(b.rank()) * 131u) %
                                          1000003u) /
                       1e6F;
        send[i] = x * x * x - 0.2F;
        out.asked += static_cast<double>(send[i]);
      }
      Status s = (*comm)->all_reduce(send.data(), receive.data(), kCount, kF32, Op::kSum);
      if (s) s = (*comm)->wait();
      if (!s) {
        shared_->has_error[b.rank()] = true;
        (void)(*comm)->abort();
        return s;
      }
      for (const float x : receive) {
        out.got += static_cast<double>(x);
        out.not_zero += x != 0 ? 1 : 0;
      }
      out.hash = hash_of(receive);
    }
    // In shadow_sync others may still work, and need this one's part of rounds.
    const Status ended = (*comm)->destroy();
    (void)b.note("finished");
    std::this_thread::sleep_for(std::chrono::milliseconds(c.lives_on_ms));
    return ended;
  }

  void run(const Case& c) {
    LaunchOptions launch_options;
    launch_options.ranks = kRanks;
    launch_options.deadline_ms = 60000;
    std::vector<pid_t> pids;
    int finished = 0;
    launch_options.on_started = [&](const std::vector<pid_t>& p) { pids = p; };
    launch_options.on_note = [&](int, const std::string& text) {
      if (text == "running") {
        for (const int v : c.victims) kill(pids[v], c.signal_number);
      } else if (++finished == kRanks - static_cast<int>(c.victims.size())) {
        for (const int v : c.victims) kill(pids[v], SIGCONT);  // who was stopped is too late
      }
    };
    const auto exits = launch(launch_options, [&](Bootstrap& b) { return work(b, c); });
    ASSERT_TRUE(exits.is_ok()) << exits.status().message();
    const std::set<int> lost(c.victims.begin(), c.victims.end());
    for (int r = 0; r < kRanks; ++r) {
      if (lost.count(r) == 0) {
        survivors_.push_back(r);
        EXPECT_EQ((*exits)[r].code, 0) << "rank " << r;
      } else if (c.signal_number == SIGSTOP) {
        EXPECT_TRUE(shared_->has_error[r]) << "rank " << r << " was excluded";
      }
    }
  }
  bool is_same(int step) const {
    for (const int r : survivors_) {
      if (shared_->steps[r][step].hash != shared_->steps[survivors_[0]][step].hash) return false;
    }
    return true;
  }
  // Once the loss is over, all that survivors contributed is what they got, in every step.
  void expect_sums_are_kept(int from, int to) const {
    for (int step = from; step < to; ++step) {
      double asked = 0, got = 0;
      for (const int r : survivors_) {
        asked += shared_->steps[r][step].asked;
        got += shared_->steps[r][step].got / kRanks;
      }
      EXPECT_NEAR(got, asked, 1e-4 * kCount) << "step " << step;
    }
  }
  int relaxed_steps(int from, int to) const {
    int n = 0;
    for (int step = from; step < to; ++step) n += is_same(step) ? 0 : 1;
    return n;
  }
  int sparse_steps(int from, int to) const {
    int n = 0;
    for (int step = from; step < to; ++step) {
      n += shared_->steps[survivors_[0]][step].not_zero < kCount / 2 ? 1 : 0;
    }
    return n;
  }

  SharedMemory<Shared> shared_;
  std::vector<int> survivors_;
};

TEST_F(ModeLosses, TwoAreKilledInDsSync) {
  RIFFLE_NEEDS_PLUGIN();
  const Case c{.knobs = {{"RIFFLE_SYNC", "ds_sync"}}, .victims = {0, 5}};
  run(c);
  std::printf("relaxed steps before and after: %d, %d\n", relaxed_steps(0, c.at_step),
              relaxed_steps(c.at_step, c.steps));
  EXPECT_GT(relaxed_steps(0, c.at_step), 3);
  EXPECT_GT(relaxed_steps(c.at_step + 10, c.steps), 30);
  expect_sums_are_kept(c.at_step + 10, c.steps);
}

TEST_F(ModeLosses, OneIsStoppedInMoshpit) {
  RIFFLE_NEEDS_PLUGIN();
  const Case c{.knobs = {{"RIFFLE_SYNC", "moshpit"}}, .victims = {3}, .signal_number = SIGSTOP};
  run(c);
  EXPECT_GT(relaxed_steps(0, c.at_step), 3);
  EXPECT_GT(relaxed_steps(c.at_step + 10, c.steps), 30);
  expect_sums_are_kept(c.at_step + 10, c.steps);
}

TEST_F(ModeLosses, OneIsKilledInShadowSync) {
  RIFFLE_NEEDS_PLUGIN();
  const Case c{.knobs = {{"RIFFLE_SYNC", "shadow_sync"}, {"RIFFLE_SHADOW_STEPS", "4"}},
               .victims = {7}};
  run(c);
  EXPECT_GT(relaxed_steps(0, c.at_step), 3);
  EXPECT_GT(relaxed_steps(c.at_step + 10, c.steps), 30);
}

// Processes that are through are gone before slower ones have begun their last rounds; at last
// fewer than half are left.
TEST_F(ModeLosses, ProcessesEndOneAfterTheOtherInShadowSync) {
  RIFFLE_NEEDS_PLUGIN();
  const Case c{.knobs = {{"RIFFLE_SYNC", "shadow_sync"}, {"RIFFLE_SHADOW_STEPS", "4"}},
               .victims = {},
               .steps = 240,
               .uneven_us = 150};
  run(c);
  EXPECT_GT(relaxed_steps(0, c.steps), 30);
}

// Where a loss is an error, the close of a process that lives on is deferred for the others.
TEST_F(ModeLosses, CommunicatorsAreDestroyedOneAfterTheOtherInShadowSync) {
  RIFFLE_NEEDS_PLUGIN();
  const Case c{.knobs = {{"RIFFLE_SYNC", "shadow_sync"}, {"RIFFLE_SHADOW_STEPS", "4"}},
               .victims = {},
               .steps = 240,
               .uneven_us = 150,
               .lives_on_ms = 800,
               .on_loss = "error"};
  run(c);
  EXPECT_GT(relaxed_steps(0, c.steps), 30);
}

// All nodes get the same bits all the time; the mode begins again without the lost ones.
TEST_F(ModeLosses, TwoAreKilledInTheSparseMode) {
  RIFFLE_NEEDS_PLUGIN();
  const Case c{.knobs = {{"RIFFLE_SPARSE", "0.01"}, {"RIFFLE_SPARSE_RAMP", "0"}},
               .victims = {0, 5},
               .steps = 490};
  run(c);
  for (int step = 0; step < c.steps; ++step) EXPECT_TRUE(is_same(step)) << step;
  std::printf("sparse steps before and after: %d, %d\n", sparse_steps(0, c.at_step),
              sparse_steps(c.at_step, c.steps));
  EXPECT_GT(sparse_steps(0, c.at_step), 3);
  EXPECT_GT(sparse_steps(c.at_step + 5, c.steps), 3);
}

TEST_F(ModeLosses, OneIsStoppedInTheSparseMode) {
  RIFFLE_NEEDS_PLUGIN();
  const Case c{.knobs = {{"RIFFLE_SPARSE", "0.01"}, {"RIFFLE_SPARSE_RAMP", "0"}},
               .victims = {2},
               .signal_number = SIGSTOP};
  run(c);
  for (int step = 0; step < c.steps; ++step) EXPECT_TRUE(is_same(step)) << step;
  EXPECT_GT(sparse_steps(0, c.at_step), 3);
}

}  // namespace
}  // namespace riffle::host::mode_losses_plugin_test
