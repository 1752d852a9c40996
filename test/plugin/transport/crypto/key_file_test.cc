// RIFFLE_KEY_FILE: which files are taken, and what is said of others.
#include "plugin/transport/crypto/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace riffle::key_file_test {
namespace {

class KeyFile : public ::testing::Test {
 protected:
  KeyFile() {
    std::string pattern = ::testing::TempDir() + "/riffle_key_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~KeyFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& content, mode_t mode = 0600) {
    const std::string path = folder_ + "/key";
    std::filesystem::remove(path);
    std::ofstream(path) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  void expect_refused(const std::string& path, const std::string& reason) {
    for (const Status& s : {read_key_file(path).status(), check_key_file(path)}) {
      EXPECT_NE(s.message().find(path), std::string::npos) << s.message();
      EXPECT_NE(s.message().find(reason), std::string::npos) << s.message();
    }
  }
  std::string folder_;
};

TEST_F(KeyFile, APipeIsNotWaitedFor) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expect_refused(path, "is not a regular file");
}

TEST_F(KeyFile, TheSameBytesGiveTheSameKeyAndOthersAnother) {
  const auto a = read_key_file(write(std::string(32, 'a')));
  const auto again = read_key_file(write(std::string(32, 'a'), 0400));
  const auto longer = read_key_file(write(std::string(33, 'a')));
  const auto most = read_key_file(write(std::string(4096, 'a')));
  ASSERT_TRUE(a && again && longer && most);
  const auto bytes = [](const auto& key) {
    return std::vector((*key)->bytes().begin(), (*key)->bytes().end());
  };
  EXPECT_EQ(bytes(a), bytes(again));
  EXPECT_NE(bytes(a), bytes(longer));
  EXPECT_NE(bytes(longer), bytes(most));
  EXPECT_TRUE(check_key_file(folder_ + "/key"));
}

TEST_F(KeyFile, OthersMustNotGetAtIt) {
  for (const mode_t mode : {0640, 0604, 0620, 0666, 0610}) {
    expect_refused(write(std::string(32, 'a'), mode), "chmod 0600");
  }
  expect_refused(write(std::string(32, 'a'), 0640), "has mode 0640");
}

TEST_F(KeyFile, HasASensibleSize) {
  expect_refused(write(""), "has 0 bytes: 32..4096");
  expect_refused(write(std::string(31, 'a')), "has 31 bytes");
  expect_refused(write(std::string(4097, 'a')), "has 4097 bytes");
}

TEST_F(KeyFile, IsAFileThatIsThere) {
  expect_refused(folder_ + "/absent", "No such file");
  EXPECT_EQ(::chmod(folder_.c_str(), 0700), 0);
  expect_refused(folder_, "is not a regular file");
}

TEST_F(KeyFile, BelongsToTheUserOrRoot) {
  const std::string path = write(std::string(32, 'a'));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(path.c_str(), 4711, 0), 0);
  expect_refused(path, "belongs to user 4711");
}

}  // namespace
}  // namespace riffle::key_file_test
