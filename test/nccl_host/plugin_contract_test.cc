// What NCCL relies on beyond right sums: every table version, refusal and fallback, abort, lost
// peers, tear-down and re-creation.
#include <signal.h>

#include <chrono>
#include <thread>

#include "lab/nccl_host/work/pattern.h"
#include "test/nccl_host/plugin_under_test.h"

namespace riffle::host::plugin_contract_test {
namespace {

constexpr auto kF32 = DataType::kFloat32;
using Clock = std::chrono::steady_clock;

Status check_sum(Communicator& comm, Bootstrap& b, std::size_t count, unsigned salt) {
  std::vector<float> data(count);
  fill_pattern(data.data(), count, kF32, b.rank(), salt);
  if (Status s = comm.all_reduce(data.data(), data.data(), count, kF32, Op::kSum); !s) return s;
  if (Status s = comm.wait(); !s) return s;
  const std::size_t wrong = count_wrong(data.data(), count, kF32, Op::kSum, b.size(), salt);
  return wrong == 0 ? Status::ok() : internal_error(std::to_string(wrong) + " wrong elements");
}

class TableVersion : public ::testing::TestWithParam<TableVersions> {};

TEST_P(TableVersion, CarriesRingAndCollNet) {
  RIFFLE_NEEDS_PLUGIN();
  for (Algorithm algorithm : {Algorithm::kRing, Algorithm::kCollNetChain}) {
    Options options;
    options.algorithm = algorithm;
    options.poison_tail = true;
    const Status status = run_ranks(3, GetParam(), options, [&](Communicator& comm, Bootstrap& b) {
      if (!comm.has_collnet()) return internal_error("CollNet was not set up");
      if (Status s = check_sum(comm, b, 1, 1); !s) return s;
      return check_sum(comm, b, 1000003, 2);
    });
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, TableVersion,
                         ::testing::Values(TableVersions{6, 6, 0}, TableVersions{7, 7, 0},
                                           TableVersions{8, 8, 3}, TableVersions{9, 9, 4},
                                           TableVersions{10, 10, 4}, TableVersions{11, 11, 5},
                                           TableVersions{12, 12, 6}),
                         [](const auto& info) { return "v" + std::to_string(info.param.net); });

// The progress thread stops between two calls; the first deregMr fences the staging region, which
// is unmapped right after; closeColl comes with requests outstanding. A plugin that touches the
// region too late dies here with SIGSEGV.
TEST(Abort, LeavesTheStagingRegionAlone) {
  RIFFLE_NEEDS_PLUGIN();
  Options options;
  options.algorithm = Algorithm::kCollNetChain;
  const Status status = run_ranks(3, {}, options, [&](Communicator& comm, Bootstrap& b) -> Status {
    constexpr std::size_t kCount = 64 << 20;
    std::vector<float> data(kCount, 1.0f);
    if (Status s = comm.all_reduce(data.data(), data.data(), kCount, kF32, Op::kSum); !s) return s;
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (comm.outstanding() < 2 && Clock::now() < end) std::this_thread::yield();
    if (comm.outstanding() < 2) return internal_error("nothing was outstanding at the abort");
    // The first abort ends the others' requests: not before all have seen theirs under way.
    if (Status s = b.barrier(); !s) return s;
    const auto begin = Clock::now();
    if (Status s = comm.abort(); !s) return s;
    const auto took = Clock::now() - begin;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // for late writers
    if (Status s = b.barrier(); !s) return s;
    return took < std::chrono::seconds(2) ? Status::ok()
                                          : internal_error("the abort took too long");
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

// One rank vanishes in mid-collective. Every other rank must get an error from the plugin, not a
// hang.
void expect_error_after(int signal_number, Algorithm algorithm, bool in_wait = false) {
  constexpr int kRanks = 4;
  constexpr int kVictim = 2;
  LaunchOptions launch_options;
  launch_options.ranks = kRanks;
  launch_options.deadline_ms = 40000;
  std::vector<pid_t> pids;
  launch_options.on_started = [&](const std::vector<pid_t>& p) { pids = p; };
  std::vector<std::string> notes;
  launch_options.on_note = [&](int rank, const std::string& text) {
    if (text == "running" && rank == kVictim)
      kill(pids[kVictim], signal_number);
    else if (text != "running")
      notes.push_back(std::to_string(rank) + ": " + text);
    // A stopped process would keep the launcher waiting.
    if (notes.size() == kRanks - 1) kill(pids[kVictim], SIGKILL);
  };
  const auto exits = launch(launch_options, [&](Bootstrap& b) -> Status {
    set_plugin_environment();
    setenv("RIFFLE_PEER_TIMEOUT", "3", 1);
    auto library = PluginLibrary::load(plugin_path(), {});
    if (!library) return library.status();
    Options options;
    options.algorithm = algorithm;
    options.deadline_ms = 30000;
    options.progress.in_wait = in_wait;
    auto comm = Communicator::create(**library, b, options);
    if (!comm) return comm.status();
    std::vector<float> data(4 << 20, 1.0f);
    const auto begin = Clock::now();
    for (int i = 0; Clock::now() < begin + std::chrono::seconds(20); ++i) {
      if (i == 3) {
        if (Status s = b.note("running"); !s) return s;
      }
      Status s = (*comm)->all_reduce(data.data(), data.data(), data.size(), kF32, Op::kMax);
      if (s) s = (*comm)->wait();
      if (s) continue;
      if (s.code() == Code::kTimeout) return internal_error("the survivor hangs");
      if (Status n = b.note(s.message()); !n) return n;
      return (*comm)->abort();
    }
    return internal_error("the survivor saw no error");
  });
  ASSERT_TRUE(exits.is_ok()) << exits.status().message();
  for (int r = 0; r < kRanks; ++r) {
    if (r == kVictim) continue;
    EXPECT_EQ(exits.value()[static_cast<std::size_t>(r)].code, 0) << "rank " << r;
  }
  EXPECT_EQ(notes.size(), static_cast<std::size_t>(kRanks - 1));
}

TEST(LostPeer, KilledInCollNet) {
  RIFFLE_NEEDS_PLUGIN();
  expect_error_after(SIGKILL, Algorithm::kCollNetChain);
}

TEST(LostPeer, StoppedInCollNet) {
  RIFFLE_NEEDS_PLUGIN();
  expect_error_after(SIGSTOP, Algorithm::kCollNetChain);
}

TEST(LostPeer, KilledWhileTheOthersDriveTheProxiesInWait) {
  RIFFLE_NEEDS_PLUGIN();
  expect_error_after(SIGKILL, Algorithm::kCollNetChain, true);
}

// One of two does not take part.
TEST(Abort, AfterTheDeadlineOfTheProxiesInWait) {
  RIFFLE_NEEDS_PLUGIN();
  Options options;
  options.progress.in_wait = true;
  options.deadline_ms = 3000;
  const Status status = run_ranks(2, {}, options, [&](Communicator& comm, Bootstrap& b) -> Status {
    if (b.rank() == 0) {
      float one = 1;
      if (Status s = comm.all_reduce(&one, &one, 1, kF32, Op::kSum); !s) return s;
      const Status s = comm.wait();
      if (s.code() != Code::kTimeout) return internal_error("no timeout, but: " + s.message());
    }
    if (Status s = b.barrier(); !s) return s;
    return comm.abort();
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST(Lifetime, RanksThatCloseApartSeeNoError) {
  RIFFLE_NEEDS_PLUGIN();
  const Status status = run_ranks(3, {}, {}, [&](Communicator& comm, Bootstrap& b) -> Status {
    if (Status s = check_sum(comm, b, 500000, 7); !s) return s;
    std::this_thread::sleep_for(std::chrono::milliseconds(300 * b.rank()));
    return comm.async_error();  // run_ranks destroys the communicator next
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST(Lifetime, CommunicatorsCanBeMadeAgain) {
  RIFFLE_NEEDS_PLUGIN();
  LaunchOptions launch_options;
  launch_options.ranks = 3;
  const Status status = all_succeeded(launch(launch_options, [&](Bootstrap& b) -> Status {
    set_plugin_environment();
    for (unsigned round = 0; round < 5; ++round) {
      // Loaded and closed each time, as NCCL 2.28 does with the last communicator.
      auto library = PluginLibrary::load(plugin_path(), {});
      if (!library) return library.status();
      Options options;
      auto comm = Communicator::create(**library, b, options);
      if (!comm) return comm.status();
      if (Status s = check_sum(**comm, b, 70001, round); !s) return s;
      if (Status s = (*comm)->destroy(); !s) return s;
    }
    return Status::ok();
  }));
  EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST(SeveralCommunicators, RunSideBySide) {
  RIFFLE_NEEDS_PLUGIN();
  LaunchOptions launch_options;
  launch_options.ranks = 4;
  const Status status = all_succeeded(launch(launch_options, [&](Bootstrap& b) -> Status {
    set_plugin_environment();
    auto library = PluginLibrary::load(plugin_path(), {});
    if (!library) return library.status();
    auto half = b.split(b.rank() % 2);
    if (!half) return half.status();
    Options options;
    options.algorithm = Algorithm::kCollNetChain;
    auto whole_comm = Communicator::create(**library, b, options);
    if (!whole_comm) return whole_comm.status();
    auto half_comm = Communicator::create(**library, **half, options);
    if (!half_comm) return half_comm.status();
    constexpr std::size_t kCount = 2000003;
    for (unsigned salt = 0; salt < 3; ++salt) {
      std::vector<float> a(kCount), c(kCount);
      fill_pattern(a.data(), kCount, kF32, b.rank(), salt);
      fill_pattern(c.data(), kCount, kF32, (*half)->rank(), salt);
      if (Status s = (*whole_comm)->all_reduce(a.data(), a.data(), kCount, kF32, Op::kSum); !s)
        return s;
      if (Status s = (*half_comm)->all_reduce(c.data(), c.data(), kCount, kF32, Op::kSum); !s)
        return s;
      if (Status s = (*half_comm)->wait(); !s) return s;
      if (Status s = (*whole_comm)->wait(); !s) return s;
      if (count_wrong(a.data(), kCount, kF32, Op::kSum, 4, salt) != 0 ||
          count_wrong(c.data(), kCount, kF32, Op::kSum, 2, salt) != 0) {
        return internal_error("wrong elements");
      }
    }
    if (Status s = (*half_comm)->destroy(); !s) return s;
    return (*whole_comm)->destroy();
  }));
  EXPECT_TRUE(status.is_ok()) << status.message();
}

}  // namespace
}  // namespace riffle::host::plugin_contract_test
