// Knobs published on a node: found by others, refused when different, gone with their process.
#include "plugin/collective/base/agreement.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "plugin/collective/base/live_file.h"

namespace riffle::agreement::agreement_test {
namespace {

namespace fs = std::filesystem;

constexpr char kOurs[] = "RIFFLE_LANES=8\nRIFFLE_STREAMS=2\n";
constexpr char kTheirs[] = "RIFFLE_LANES=4\nRIFFLE_STREAMS=2\n";

class AgreementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "riffle-agreement-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    directory = root_ + "/published";
  }
  void TearDown() override { fs::remove_all(root_); }

  std::size_t files() const {
    if (!fs::exists(directory)) return 0;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
  }

  std::string directory;

 private:
  std::string root_;
};

// Another process that publishes and then waits to be told to end.
class Neighbour {
 public:
  explicit Neighbour(const std::function<void()>& work) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ready[0]);
      work();
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the neighbour died";
    ::close(ready[0]);
  }
  ~Neighbour() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  std::string name() const { return "process " + std::to_string(pid_); }

 private:
  pid_t pid_ = 0;
};

TEST_F(AgreementTest, FindsADifferentNeighbour) {
  const auto own = publish("job", kOurs, directory);
  ASSERT_NE(own, nullptr);
  EXPECT_TRUE(check_local("job", kOurs, directory));  // one's own publication is no neighbour
  EXPECT_TRUE(check_local("job", kTheirs, directory));
  std::shared_ptr<Publication> theirs;
  Neighbour neighbour([&] { theirs = publish("job", kTheirs, directory); });
  EXPECT_EQ(files(), 2u);
  const Status status = check_local("job", kOurs, directory);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  for (const std::string& part : {neighbour.name(), std::string("RIFFLE_LANES"), std::string("'4'"),
                                  std::string("'8'"), std::string(" on ")}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_EQ(status.message().find("STREAMS"), std::string::npos) << status.message();
  EXPECT_TRUE(check_local("job", kTheirs, directory));
  EXPECT_TRUE(check_local("other job", kOurs, directory));
}

TEST_F(AgreementTest, ForgetsTheDead) {
  Neighbour neighbour([&] { static auto kept = publish("job", kTheirs, directory); });
  EXPECT_FALSE(check_local("job", kOurs, directory));
  neighbour.kill();
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(check_local("job", kOurs, directory));
  EXPECT_EQ(files(), 0u);  // and cleans up after them
}

TEST_F(AgreementTest, CleansUpAtExitAndAfterCrashes) {
  {
    Neighbour crashed([&] { static auto kept = publish("some job", kOurs, directory); });
  }
  EXPECT_EQ(files(), 1u);
  const auto own = publish("job", kOurs, directory);
  EXPECT_EQ(files(), 1u);  // the leftover of another job is gone
  if (const pid_t child = ::fork(); child == 0) {
    new std::shared_ptr(publish("job", kTheirs, directory));  // never released
    std::exit(files() == 2 ? 0 : 1);
  } else {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), 1u);
}

TEST_F(AgreementTest, ANeighboursForkedChildrenNeitherKeepNorEndItsPublication) {
  int channel[2];
  ASSERT_EQ(::pipe(channel), 0);
  Neighbour neighbour([&] {
    static auto kept = publish("job", kTheirs, directory);
    if (::fork() == 0) std::exit(0);  // runs destructors, as data loaders do
    ::wait(nullptr);
    if (const pid_t child = ::fork(); child == 0) {
      for (;;) ::pause();
    } else {
      (void)!::write(channel[1], &child, sizeof child);
    }
  });
  pid_t grandchild = 0;
  ASSERT_EQ(::read(channel[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});
  EXPECT_FALSE(check_local("job", kOurs, directory));
  neighbour.kill();
  EXPECT_TRUE(check_local("job", kOurs, directory));
  ::kill(grandchild, SIGKILL);
  ::close(channel[0]);
  ::close(channel[1]);
}

TEST_F(AgreementTest, WithdrawsWithItsLastHolder) {
  auto first = publish("job", kOurs, directory);
  auto second = publish("job", kOurs, directory);
  EXPECT_EQ(first, second);
  EXPECT_EQ(files(), 1u);
  auto other = publish("other job", kOurs, directory);
  EXPECT_EQ(files(), 2u);
  first.reset();
  EXPECT_EQ(files(), 2u);
  second.reset();
  other.reset();
  EXPECT_EQ(files(), 0u);
  EXPECT_NE(publish("job", kOurs, directory), nullptr);
}

TEST_F(AgreementTest, FilesArePrivate) {
  const auto own = publish("job", kOurs, directory);
  struct stat info {};
  ASSERT_EQ(::stat(directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  for (const auto& entry : fs::directory_iterator(directory)) {
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
}

TEST_F(AgreementTest, GoesOnWithoutADirectory) {
  EXPECT_TRUE(check_local("job", kOurs, directory + "/missing/deeper"));
  EXPECT_EQ(publish("job", kOurs, directory + "/missing/deeper"), nullptr);
  // A directory that others can write to could hold anything.
  ASSERT_EQ(::mkdir(directory.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory.c_str(), 0777), 0);
  EXPECT_EQ(publish("job", kOurs, directory), nullptr);
  fs::remove(directory);
  fs::create_symlink(::testing::TempDir(), directory);
  EXPECT_EQ(publish("job", kOurs, directory), nullptr);
  fs::remove(directory);
}

TEST_F(AgreementTest, IgnoresGarbage) {
  const auto own = publish("job", kOurs, directory);
  std::string name;
  for (const auto& entry : fs::directory_iterator(directory)) name = entry.path().filename();
  const std::string prefix = name.substr(0, name.find('.') + 1);
  std::ofstream(directory + "/" + prefix + "1.0") << "no lock, so a leftover\n";
  fs::create_directory(directory + "/" + prefix + "2.0");
  fs::create_symlink("/dev/zero", directory + "/" + prefix + "3.0");
  ASSERT_EQ(::mkfifo((directory + "/" + prefix + "4.0").c_str(), 0600), 0);
  EXPECT_TRUE(check_local("job", kOurs, directory));
  // A live file without sense in it: no key line, or another key with the same hash.
  Neighbour neighbour(
      [&] { static auto odd = LiveFile::create(directory, prefix, "RIFFLE_LANES=4\n"); });
  EXPECT_TRUE(check_local("job", kOurs, directory));
}

TEST(Agreement, ComparesKnobs) {
  EXPECT_TRUE(compare_knobs("rank 1", kOurs, kOurs));
  EXPECT_TRUE(compare_knobs("rank 1", "", ""));
  const Status missing = compare_knobs("rank 1", "A=1\n", "A=1\nB=2\n");
  EXPECT_NE(missing.message().find("B is "), std::string::npos) << missing.message();
  EXPECT_NE(missing.message().find("rank 1"), std::string::npos) << missing.message();
  EXPECT_FALSE(compare_knobs("rank 1", "A=1\nB=2\n", "A=1\n"));
}

TEST(Agreement, KeysTellJobsApart) {
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
        "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}) {
    ::unsetenv(name);
  }
  EXPECT_NE(job_key(1), job_key(2));
  EXPECT_EQ(job_key(0), "session " + std::to_string(::getsid(0)));
  ::setenv("MASTER_ADDR", "node1", 1);
  ::setenv("MASTER_PORT", "29500", 1);
  EXPECT_EQ(job_key(0), "MASTER_ADDR=node1 MASTER_PORT=29500 ");
  ::setenv("TORCHELASTIC_RUN_ID", "run", 1);
  EXPECT_EQ(job_key(0), "TORCHELASTIC_RUN_ID=run ");
  ::setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_EQ(job_key(0), "SLURM_JOB_ID=7 ");
  ::setenv("SLURM_STEP_ID", "1", 1);
  EXPECT_EQ(job_key(0), "SLURM_JOB_ID=7 SLURM_STEP_ID=1 ");
  EXPECT_EQ(job_key(255), "communicator 00000000000000ff");
}

}  // namespace
}  // namespace riffle::agreement::agreement_test
