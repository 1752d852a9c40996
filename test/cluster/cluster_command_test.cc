// `riffle cluster` ends by a signal: its commands hear of it and have time to end what they have
// started in sessions of their own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "lab/cluster/namespaces.h"

namespace riffle::cluster::cluster_command_test {
namespace {

namespace fs = std::filesystem;

bool eventually(const std::function<bool()>& is_so) {
  for (int i = 0; i < 600; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

class ClusterCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    folder_ = fs::temp_directory_path() / ("riffle-cluster-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    std::ofstream(folder_ / "two.toml") << "about = \"2 nodes\"\nnodes = 2\nrate_mbps = 100\n";
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  // The exit status of a cluster whose nodes run `script` and get a signal when all are up.
  int ended_by(int signal, const std::string& script) {
    const std::string profile = folder_ / "two.toml";
    const std::string all =
        "cd " + folder_.string() + "; " + script + "; touch up$RANK; while :; do sleep 0.1; done";
    const pid_t pid = fork();
    if (pid == 0) {
      execl(RIFFLE_COMMAND, "riffle", "cluster", "--profile", profile.c_str(), "--", "sh", "-c",
            all.c_str(), nullptr);
      _exit(127);
    }
    EXPECT_TRUE(eventually([&] { return has("up0") && has("up1"); }));
    kill(pid, signal);
    int status = 0;
    EXPECT_TRUE(eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; }));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  pid_t pid_in(const std::string& name) const {
    pid_t pid = 0;
    std::ifstream(folder_ / name) >> pid;
    return pid;
  }

  fs::path folder_;
};

TEST_F(ClusterCommand, CommandsEndWhatTheyHaveStarted) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    const int status = ended_by(signal,
                                "setsid sleep 600 & echo $! >started$RANK; "
                                "trap \"kill $!; touch ended$RANK; exit 0\" TERM");
    EXPECT_EQ(status, 128 + signal);
    for (const char* rank : {"0", "1"}) {
      EXPECT_TRUE(has(std::string("ended") + rank));
      const pid_t started = pid_in(std::string("started") + rank);
      ASSERT_GT(started, 0);
      EXPECT_TRUE(eventually([&] { return kill(started, 0) != 0; })) << started;
      fs::remove(folder_ / (std::string("up") + rank));
      fs::remove(folder_ / (std::string("ended") + rank));
    }
  }
}

TEST_F(ClusterCommand, WhoDoesNotEndIsKilled) {
  EXPECT_EQ(ended_by(SIGTERM, "trap '' TERM; echo $$ >pid$RANK"), 128 + SIGTERM);
  for (const char* rank : {"0", "1"}) {
    const pid_t pid = pid_in(std::string("pid") + rank);
    ASSERT_GT(pid, 0);
    EXPECT_TRUE(eventually([&] { return kill(pid, 0) != 0; }));
  }
}

}  // namespace
}  // namespace riffle::cluster::cluster_command_test
