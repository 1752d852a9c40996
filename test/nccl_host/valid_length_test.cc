// The shipped plugin moves only what is valid of NCCL's padded calls (RIFFLE_VALID_LENGTH): right
// sums though the padding differs from rank to rank, and the bytes on the wire, as the record has
// them. Where a rank has no profiler all ranks move everything.
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>

#include "lab/nccl_host/work/pattern.h"
#include "test/nccl_host/plugin_under_test.h"

namespace riffle::host::valid_length_test {
namespace {

constexpr auto kF32 = DataType::kFloat32;
constexpr int kRanks = 3;
constexpr unsigned kSteps = 40;
constexpr std::uint64_t kPadded = 32 << 10;  // what NCCL posts for anything smaller

// Of the last sample of every file of the record: bytes sent to all peers.
std::uint64_t bytes_on_the_wire(const std::filesystem::path& folder) {
  static const std::regex link("\"out\": ?([0-9]+)");
  std::uint64_t sum = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(file.path());
    std::string last;
    for (std::string line; std::getline(in, line);) {
      if (line.find("\"links\"") != std::string::npos) last = line;
    }
    for (std::sregex_iterator i(last.begin(), last.end(), link), end; i != end; ++i) {
      sum += std::stoull((*i)[1]);
    }
  }
  return sum;
}

class ValidLength : public ::testing::Test {
 protected:
  ValidLength()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("riffle-valid-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    setenv("RIFFLE_RECORD", (folder_.string() + "/").c_str(), 1);
  }
  ~ValidLength() override {
    unsetenv("RIFFLE_RECORD");
    std::filesystem::remove_all(folder_);
  }

  // `dark`: the rank without a profiler; -1: none. `algorithm`: none for what the tuner chooses.
  static Status reduce(const std::vector<std::size_t>& counts, int dark,
                       std::optional<Algorithm> algorithm = Algorithm::kCollNetChain) {
    LaunchOptions launch_options;
    launch_options.ranks = kRanks;
    launch_options.deadline_ms = 100000;
    return all_succeeded(launch(launch_options, [&](Bootstrap& b) -> Status {
      set_plugin_environment();
      auto library = PluginLibrary::load(plugin_path(), {11, 11, 5, b.rank() == dark ? 0 : 5});
      if (!library) return library.status();
      Options options;
      options.algorithm = algorithm;
      options.poison_tail = true;
      auto comm = Communicator::create(**library, b, options);
      if (!comm) return comm.status();
      for (unsigned step = 0; step < kSteps; ++step) {
        for (const std::size_t count : counts) {
          std::vector<float> data(count);
          fill_pattern(data.data(), count, kF32, b.rank(), step);
          Status s = (*comm)->all_reduce(data.data(), data.data(), count, kF32, Op::kSum);
          if (s) s = (*comm)->wait();
          if (!s) return s;
          if (count_wrong(data.data(), count, kF32, Op::kSum, kRanks, step) != 0) {
            return internal_error("wrong sums of " + std::to_string(count) + " elements");
          }
        }
      }
      return (*comm)->destroy();
    }));
  }

  const std::filesystem::path folder_;
};

TEST_F(ValidLength, PaddingIsNotMoved) {
  RIFFLE_NEEDS_PLUGIN();
  const Status status = reduce({1}, -1);
  EXPECT_TRUE(status.is_ok()) << status.message();
  const std::uint64_t bytes = bytes_on_the_wire(folder_);
  EXPECT_GT(bytes, 0U);
  EXPECT_LT(bytes, kSteps * kPadded / 4);
}

// One-off calls too: nothing needs to repeat.
TEST_F(ValidLength, NothingNeedsToRepeat) {
  RIFFLE_NEEDS_PLUGIN();
  std::vector<std::size_t> counts;
  std::size_t all = 0;
  for (std::size_t i = 0; i < 12; ++i) counts.push_back(1 + i * i * i * 97 % 60000);
  for (const std::size_t count : counts) all += count * sizeof(float);
  const Status status = reduce(counts, -1);
  EXPECT_TRUE(status.is_ok()) << status.message();
  // Each element goes out to its owner and comes back: 2 (N - 1) times over all nodes. Headers.
  const double least = 2.0 * (kRanks - 1) * kSteps * static_cast<double>(all);
  EXPECT_LT(static_cast<double>(bytes_on_the_wire(folder_)), 1.1 * least + (1 << 20));
}

// The tuner's limit of 64 KiB: it falls when all nodes have said in connect that they know.
TEST_F(ValidLength, SmallSumsTakeGroupPlansWhereAllKnow) {
  RIFFLE_NEEDS_PLUGIN();
  const Status status = reduce({1, 1000}, -1, std::nullopt);
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_GT(bytes_on_the_wire(folder_), 2 * (kRanks - 1) * kSteps * 1000 * sizeof(float));
}

TEST_F(ValidLength, AndNcclsRingWhereOneDoesNot) {
  RIFFLE_NEEDS_PLUGIN();
  const Status status = reduce({1, 1000}, 1, std::nullopt);
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_LT(bytes_on_the_wire(folder_), kSteps * 1000 * sizeof(float) / 4);
}

TEST_F(ValidLength, OrWhereTheLimitWasSet) {
  RIFFLE_NEEDS_PLUGIN();
  setenv("RIFFLE_COLLNET_MIN_BYTES", "64K", 1);
  const Status status = reduce({1, 1000}, -1, std::nullopt);
  unsetenv("RIFFLE_COLLNET_MIN_BYTES");
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_LT(bytes_on_the_wire(folder_), kSteps * 1000 * sizeof(float) / 4);
}

TEST_F(ValidLength, AllMoveEverythingWhereOneRankHasNoProfiler) {
  RIFFLE_NEEDS_PLUGIN();
  const Status status = reduce({1}, 1);
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_GT(bytes_on_the_wire(folder_), 2 * (kRanks - 1) * kSteps * kPadded);
}

}  // namespace
}  // namespace riffle::host::valid_length_test
