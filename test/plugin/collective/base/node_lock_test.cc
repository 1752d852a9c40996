// The lock on a machine's network: one holder at a time, also within a process; it ends with its
// process and is shared by the nodes of one communicator.
#include "plugin/collective/base/node_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "plugin/collective/base/live_file.h"

namespace riffle::node_lock_test {
namespace {

class NodeLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "lock-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(NodeLockTest, OneHolderAtATime) {
  NodeLock first = try_node_lock(1, folder_);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(try_node_lock(2, folder_), nullptr);
  const NodeLock same = try_node_lock(1, folder_);
  EXPECT_NE(same, nullptr) << "nodes of one communicator on one machine";
  // Files of other kinds come and go in that directory, and what is left over is removed.
  EXPECT_TRUE(LiveFile::create(folder_, "other", "content"));
  EXPECT_EQ(try_node_lock(2, folder_), nullptr);
  first.reset();
  const NodeLock second = try_node_lock(2, folder_);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(try_node_lock(1, folder_), nullptr);
}

TEST_F(NodeLockTest, EndsWithItsProcess) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const NodeLock held = try_node_lock(1, folder_);
    const char byte = held ? 1 : 0;
    if (write(told[1], &byte, 1) != 1) _exit(1);
    while (true) pause();
  }
  char has_it = 0;
  ASSERT_EQ(read(told[0], &has_it, 1), 1);
  EXPECT_EQ(has_it, 1);
  EXPECT_EQ(try_node_lock(2, folder_), nullptr);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_NE(try_node_lock(2, folder_), nullptr);
  close(told[0]);
  close(told[1]);
}

TEST_F(NodeLockTest, AForkedChildDoesNotKeepIt) {
  NodeLock held = try_node_lock(1, folder_);
  const pid_t pid = fork();
  if (pid == 0) {
    while (true) pause();
  }
  held.reset();
  EXPECT_NE(try_node_lock(2, folder_), nullptr);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST_F(NodeLockTest, WithoutAPlaceForFilesEverybodyGetsIt) {
  chmod(folder_.c_str(), 0777);  // not a directory that only this user can write
  const NodeLock first = try_node_lock(1, folder_);
  const NodeLock second = try_node_lock(2, folder_);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
}

}  // namespace
}  // namespace riffle::node_lock_test
