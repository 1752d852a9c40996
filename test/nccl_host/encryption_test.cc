// Whole jobs of processes with the shipped plugin, encrypted: the same bits as without, over NET
// and in group plans, and every way in which nodes may differ ends with a sentence that says so.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lab/nccl_host/work/pattern.h"
#include "test/nccl_host/plugin_under_test.h"
#include "test/shared_memory.h"

namespace riffle::host::encryption_test {
namespace {

constexpr int kRanks = 4;
using Environment = std::vector<std::pair<std::string, std::string>>;

// What each rank's log says, and what became of its communicator.
class EncryptedJob : public ::testing::Test {
 protected:
  EncryptedJob() {
    std::string pattern = ::testing::TempDir() + "/riffle_encryption_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~EncryptedJob() override { std::filesystem::remove_all(folder_); }

  std::string key_file(const std::string& name, char fill) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << std::string(32, fill);
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
    return path;
  }

  // `body` with a communicator per rank; `of_rank` has the settings of each.
  Status run(const std::vector<Environment>& of_rank, const Options& options,
             const std::function<Status(Communicator&, Bootstrap&)>& body) {
    LaunchOptions launch_options;
    launch_options.ranks = static_cast<int>(of_rank.size());
    launch_options.deadline_ms = 100000;
    return all_succeeded(launch(launch_options, [&](Bootstrap& bootstrap) -> Status {
      const auto rank = static_cast<std::size_t>(bootstrap.rank());
      const std::string log = folder_ + "/log" + std::to_string(rank);
      dup2(open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), STDERR_FILENO);
      set_plugin_environment();
      setenv("NCCL_DEBUG", "INFO", 1);
      setenv("RIFFLE_CONNECT_TIMEOUT", "6", 1);
      for (const auto& [name, value] : of_rank[rank]) setenv(name.c_str(), value.c_str(), 1);
      auto library = PluginLibrary::load(plugin_path(), {});
      if (!library) return library.status();
      auto comm = Communicator::create(**library, bootstrap, options);
      if (!comm) return comm.status();
      if (Status s = body(**comm, bootstrap); !s) return s;
      return (*comm)->destroy();
    }));
  }
  std::string log_of(int rank) {
    std::ifstream file(folder_ + "/log" + std::to_string(rank));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void expect_said(int rank, const std::string& sentence) {
    EXPECT_NE(log_of(rank).find(sentence), std::string::npos) << rank << ": " << log_of(rank);
  }

  std::string folder_;
};

// Sums that depend on the order in which they are made.
float element(int rank, std::size_t i) {
  return 1.0f / static_cast<float>(3 + (i * 7919 + static_cast<std::size_t>(rank) * 104729) % 9973);
}

struct Bits {
  std::array<std::uint64_t, kRanks> of_rank{};
};

TEST_F(EncryptedJob, GivesTheSameBits) {
  RIFFLE_NEEDS_PLUGIN();
  const std::string key = key_file("key", 'k');
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kCollNetChain}) {
    std::vector<Bits> all;
    for (const Environment& one :
         {Environment{{"RIFFLE_ENCRYPT", "0"}}, Environment{{"RIFFLE_ENCRYPT", "1"}},
          Environment{{"RIFFLE_ENCRYPT", "1"}, {"RIFFLE_KEY_FILE", key}}}) {
      Environment environment = one;
      environment.emplace_back("RIFFLE_DETERMINISTIC", "1");
      environment.emplace_back("RIFFLE_PROBE", "off");
      const SharedMemory<Bits> bits;
      Options options;
      options.algorithm = algorithm;
      options.poison_tail = true;
      const Status status =
          run(std::vector(kRanks, environment), options, [&](Communicator& comm, Bootstrap& b) {
            std::uint64_t hash = 1469598103934665603u;
            for (const std::size_t count :
                 {std::size_t{1}, std::size_t{1000}, std::size_t{3000017}}) {
              std::vector<float> data(count);
              for (std::size_t i = 0; i < count; ++i) data[i] = element(b.rank(), i);
              if (Status s = comm.all_reduce(data.data(), data.data(), count, DataType::kFloat32,
                                             Op::kSum);
                  !s) {
                return s;
              }
              if (Status s = comm.wait(); !s) return s;
              for (const float x : data) {
                std::uint32_t word;
                std::memcpy(&word, &x, sizeof word);
                hash = (hash ^ word) * 1099511628211u;
              }
            }
            bits->of_rank[static_cast<std::size_t>(b.rank())] = hash;
            return Status::ok();
          });
      ASSERT_TRUE(status) << status.message() << log_of(0);
      all.push_back(Bits{bits->of_rank});
    }
    EXPECT_EQ(all[0].of_rank, all[1].of_rank);
    EXPECT_EQ(all[0].of_rank, all[2].of_rank);
    for (const std::uint64_t one : all[0].of_rank) EXPECT_EQ(one, all[0].of_rank[0]);
  }
}

Status no_work(Communicator&, Bootstrap&) { return Status::ok(); }

// NCCL connects rings before group plans, where both ends of a connection notice: node 2 connects
// to node 3 (of a group plan, all nodes: encrypted_mesh_test).
TEST_F(EncryptedJob, ANodeWithoutEndsItAndItsNeighbourSaysWhy) {
  RIFFLE_NEEDS_PLUGIN();
  std::vector<Environment> of_rank(kRanks, {{"RIFFLE_ENCRYPT", "1"}});
  of_rank[2] = {{"RIFFLE_ENCRYPT", "0"}};
  EXPECT_FALSE(run(of_rank, {}, no_work));
  const std::string with = "RIFFLE_ENCRYPT=1 without RIFFLE_KEY_FILE", without = "RIFFLE_ENCRYPT=0";
  expect_said(3,
              "it has " + without + ", this node has " + with + ": all nodes must have the same");
  expect_said(2, "it has " + with + ", this node has " + without);
}

TEST_F(EncryptedJob, AnotherKeyEndsIt) {
  RIFFLE_NEEDS_PLUGIN();
  std::vector<Environment> of_rank(
      kRanks, {{"RIFFLE_ENCRYPT", "1"}, {"RIFFLE_KEY_FILE", key_file("one", '1')}});
  of_rank[1][1].second = key_file("two", '2');
  EXPECT_FALSE(run(of_rank, {}, no_work));
  const std::string all = log_of(0) + log_of(1) + log_of(2) + log_of(3);
  EXPECT_NE(all.find("its RIFFLE_KEY_FILE holds another key"), std::string::npos) << all;
}

TEST_F(EncryptedJob, AKeyFileThatOthersCanReadEndsItBeforeAnythingConnects) {
  RIFFLE_NEEDS_PLUGIN();
  const std::string key = key_file("key", 'k');
  ASSERT_EQ(::chmod(key.c_str(), 0644), 0);
  EXPECT_FALSE(run(std::vector<Environment>(2, {{"RIFFLE_ENCRYPT", "1"}, {"RIFFLE_KEY_FILE", key}}),
                   {}, no_work));
  expect_said(0, "RIFFLE_KEY_FILE " + key + " has mode 0644");
}

// Neither logs nor records hold key bytes.
TEST_F(EncryptedJob, LeavesNoKeyBehind) {
  RIFFLE_NEEDS_PLUGIN();
  const std::string key = key_file("key", 'K');
  const Environment environment = {{"RIFFLE_ENCRYPT", "1"},
                                   {"RIFFLE_KEY_FILE", key},
                                   {"RIFFLE_LOG", "trace"},
                                   {"NCCL_DEBUG", "TRACE"},
                                   {"RIFFLE_LOG_FILE", folder_ + "/%r.file"},
                                   {"RIFFLE_RECORD", folder_ + "/%r.record"}};
  Options options;
  options.algorithm = Algorithm::kCollNetChain;
  const Status status =
      run(std::vector(2, environment), options, [](Communicator& comm, Bootstrap&) -> Status {
        std::vector<float> data(100'000, 1.0f);
        if (Status s = comm.all_reduce(data.data(), data.data(), data.size(), DataType::kFloat32,
                                       Op::kSum);
            !s) {
          return s;
        }
        return comm.wait();
      });
  ASSERT_TRUE(status) << status.message();
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path() == key) continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(text.find("KKKKKKKK"), std::string::npos) << entry.path();
    EXPECT_EQ(text.find("4b4b4b4b"), std::string::npos) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 4);
}

}  // namespace
}  // namespace riffle::host::encryption_test
