// Whole jobs, a process per rank, through the tables that ship, with group plans over connections
// of the strict library: the same bits as over TCP at every size, and a rank that is killed, with
// an error on all others and with RIFFLE_ON_LOSS=continue.
#include <signal.h>

#include <cstring>
#include <random>

#include "lab/nccl_host/communicator.h"
#include "lab/nccl_host/launcher.h"
#include "test/shared_memory.h"
#include "test/wire/rig.h"

namespace riffle::wire_library_jobs_test {
namespace {

using host::Algorithm;
using host::Bootstrap;

constexpr int kMostRanks = 8;
constexpr int kMostCalls = 400;
constexpr int kVictim = 2;
constexpr auto kF32 = DataType::kFloat32;

struct Rank {
  std::uint64_t hashes[kMostCalls];  // of results
  float sums[kMostCalls];            // first elements
  int calls;
  char error[400];
};
struct Shared {
  Rank ranks[kMostRanks];
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

struct Job {
  int ranks = 2;
  int library = 12;  // version of the strict library
  std::vector<std::pair<const char*, const char*>> knobs;
  std::vector<std::size_t> counts;  // of the calls, again and again
  int calls = 1;
  bool is_killed = false;    // rank kVictim, in mid-job
  bool fails = false;        // the library of rank kVictim, in mid-job
  bool marks_ranks = false;  // every element of rank r is 2^r, so that a sum tells its parts
};

class LibraryJobs : public ::testing::Test {
 protected:
  static void set_environment(const Job& job) {
    setenv("RIFFLE_SOCKET_IFNAME", "lo", 1);
    setenv("RIFFLE_PEER_TIMEOUT", "5", 1);
    setenv("RIFFLE_DETERMINISTIC", "1", 1);
    setenv("RIFFLE_PLAN", "direct", 1);  // whatever rate the library tells
    setenv("RIFFLE_NET", wire::strict_library(job.library).c_str(), 1);
    for (const auto& [name, value] : job.knobs) setenv(name, value, 1);
  }
  static std::vector<float> input(const Job& job, std::size_t count, int rank, int call) {
    std::vector<float> data(count, static_cast<float>(1 << rank));
    if (job.marks_ranks) return data;
    std::mt19937 random(static_cast<unsigned>(rank * 1000 + call));
    for (float& x : data) x = static_cast<float>(random()) / 4e9F - 0.4F;
    return data;
  }
  static Status call_all(host::Communicator& comm, Bootstrap& b, const Job& job, Rank* out) {
    for (int call = 0; call < job.calls; ++call) {
      if (job.is_killed && b.rank() == kVictim && call == job.calls / 4) {
        if (Status s = b.note("running"); !s) return s;
      }
      const std::size_t count = job.counts[static_cast<std::size_t>(call) % job.counts.size()];
      std::vector<float> data = input(job, count, b.rank(), call);
      if (Status s = comm.all_reduce(data.data(), data.data(), count, kF32, host::Op::kSum); !s) {
        return s;
      }
      if (Status s = comm.wait(); !s) return s;
      out->hashes[call] = hash_of(data);
      out->sums[call] = data[count / 2];
      out->calls = call + 1;
    }
    return Status::ok();
  }
  static Status work(Bootstrap& b, const Job& job, Rank* out) {
    set_environment(job);
    if (job.fails && b.rank() == kVictim) setenv("STRICT_NET_FAIL_AT", "20000", 1);
    auto library = host::PluginLibrary::load(RIFFLE_PLUGIN_PATH, {12, 12, 6});
    if (!library) return library.status();
    host::Options options;
    options.algorithm = Algorithm::kCollNetChain;
    options.deadline_ms = 40'000;
    auto comm = host::Communicator::create(**library, b, options);
    if (!comm) return comm.status();
    if (!(*comm)->has_collnet()) return internal_error("CollNet was not set up");
    const Status status = call_all(**comm, b, job, out);
    if (status) return (*comm)->destroy();
    std::strncpy(out->error, status.message().c_str(), sizeof out->error - 1);
    return (*comm)->abort();
  }
  // False: a rank that was to live did not end well.
  bool run(const Job& job) {
    *shared_.operator->() = Shared{};
    host::LaunchOptions options;
    options.ranks = job.ranks;
    options.deadline_ms = 100'000;
    std::vector<pid_t> pids;
    options.on_started = [&](const std::vector<pid_t>& p) { pids = p; };
    options.on_note = [&](int, const std::string&) { ::kill(pids[kVictim], SIGKILL); };
    const auto exits = host::launch(
        options, [&](Bootstrap& b) { return work(b, job, &shared_->ranks[b.rank()]); });
    if (!exits) ADD_FAILURE() << exits.status().message();
    bool is_well = exits.is_ok();
    for (int r = 0; is_well && r < job.ranks; ++r) {
      if (job.is_killed && r == kVictim) continue;
      is_well = (*exits)[static_cast<std::size_t>(r)].code == 0;
      EXPECT_TRUE(is_well) << "rank " << r;
    }
    return is_well;
  }

  // Sums are those of all ranks, then those of the survivors, and the same on all of them.
  void expect_survivors_go_on(Job job) {
    job.ranks = 4;
    job.knobs = {{"RIFFLE_COLLNET", "on"}, {"RIFFLE_ON_LOSS", "continue"}, {"RIFFLE_RESCALE", "0"}};
    job.counts = {300'000, 2};
    job.calls = kMostCalls;
    job.marks_ranks = true;
    ASSERT_TRUE(run(job));
    // A node whose library fails loses its links one after the other. Until the last one has gone
    // it may be the other end of the first one that the majority goes on without, and then both are
    // lost.
    int other = kVictim;
    for (int r = 0; job.fails && r < job.ranks; ++r) {
      if (r != kVictim && std::strstr(shared_->ranks[r].error, "excluded") != nullptr) other = r;
    }
    constexpr float kAll = 15;
    const int lost = 1 << kVictim | 1 << other, first = other == 0 ? 1 : 0;
    for (int r = 0; r < job.ranks; ++r) {
      if (r == kVictim || r == other) continue;
      const Rank& rank = shared_->ranks[r];
      ASSERT_EQ(rank.calls, job.calls) << rank.error;
      EXPECT_EQ(rank.sums[0], kAll);
      EXPECT_EQ(rank.sums[job.calls - 1], kAll - lost);
      float last = kAll;
      for (int call = 0; call < job.calls; ++call) {
        ASSERT_LE(rank.sums[call], last) << "call " << call << ": a lost node is back";
        last = rank.sums[call];
        const int missing = static_cast<int>(kAll - last);
        ASSERT_EQ(missing & ~lost, 0) << "call " << call << ": " << last;
        ASSERT_EQ(rank.hashes[call], shared_->ranks[first].hashes[call]) << "call " << call;
      }
    }
  }

  SharedMemory<Shared> shared_;
};

// From 8 B to 16 MiB.
const std::vector<std::size_t> kSizes = {2, 64, 1009, 16'384, 65'536 + 3, 1 << 20, 4 << 20};

TEST_F(LibraryJobs, GiveTheSameBitsAsTcpAtEverySize) {
  for (const int ranks : {2, 3, 5, 8}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    Job job{.ranks = ranks, .knobs = {{"RIFFLE_COLLNET", "tcp"}}, .counts = kSizes};
    job.calls = static_cast<int>(kSizes.size());
    ASSERT_TRUE(run(job));
    const auto over_tcp = std::make_unique<Shared>(*shared_.operator->());
    job.knobs = {{"RIFFLE_COLLNET", "on"}};
    ASSERT_TRUE(run(job));
    for (int r = 0; r < ranks; ++r) {
      EXPECT_STREQ(shared_->ranks[r].error, "");
      for (int call = 0; call < job.calls; ++call) {
        EXPECT_EQ(shared_->ranks[r].hashes[call], over_tcp->ranks[r].hashes[call])
            << "rank " << r << ", " << kSizes[static_cast<std::size_t>(call)] << " elements";
      }
    }
  }
}

TEST_F(LibraryJobs, RunOverEveryVersionOfTheTable) {
  for (int version = 5; version <= 12; ++version) {
    SCOPED_TRACE("v" + std::to_string(version));
    Job job{.ranks = 3,
            .library = version,
            .knobs = {{"RIFFLE_COLLNET", "on"}},
            .counts = {2, 100'003}};
    job.calls = 10;
    job.marks_ranks = true;
    ASSERT_TRUE(run(job));
    for (int r = 0; r < job.ranks; ++r) {
      EXPECT_EQ(shared_->ranks[r].calls, job.calls) << shared_->ranks[r].error;
      for (int call = 0; call < job.calls; ++call) EXPECT_EQ(shared_->ranks[r].sums[call], 7);
    }
  }
}

TEST_F(LibraryJobs, ProbeTheLibrarysNetworkAndReplan) {
  Job job{.ranks = 4,
          .library = 11,
          .knobs = {{"RIFFLE_COLLNET", "on"},
                    {"RIFFLE_DETERMINISTIC", "0"},
                    {"RIFFLE_PLAN", ""},
                    {"RIFFLE_PROBE", "on"},
                    {"RIFFLE_PAYLOAD_CRC", "1"}},
          .counts = {100'003, 2}};
  job.calls = 100;
  job.marks_ranks = true;
  ASSERT_TRUE(run(job));
  for (int r = 0; r < job.ranks; ++r) {
    EXPECT_EQ(shared_->ranks[r].calls, job.calls) << shared_->ranks[r].error;
    for (int call = 0; call < job.calls; ++call) ASSERT_EQ(shared_->ranks[r].sums[call], 15);
  }
}

TEST_F(LibraryJobs, EndWithAnErrorThatNamesARankThatIsKilled) {
  Job job{.ranks = 4, .knobs = {{"RIFFLE_COLLNET", "on"}}, .counts = {300'000}};
  job.calls = kMostCalls;
  job.is_killed = true;
  ASSERT_TRUE(run(job));
  for (int r = 0; r < job.ranks; ++r) {
    if (r == kVictim) continue;
    EXPECT_STRNE(shared_->ranks[r].error, "") << "rank " << r << " heard nothing of the loss";
    EXPECT_LT(shared_->ranks[r].calls, job.calls);
  }
}

TEST_F(LibraryJobs, GoOnWithoutARankThatIsKilled) {
  expect_survivors_go_on({.library = 11, .is_killed = true});
}

TEST_F(LibraryJobs, GoOnWithoutARankWhoseLibraryFails) {
  expect_survivors_go_on({.library = 11, .fails = true});
  EXPECT_STRNE(shared_->ranks[kVictim].error, "") << "it was excluded";
}

}  // namespace
}  // namespace riffle::wire_library_jobs_test
