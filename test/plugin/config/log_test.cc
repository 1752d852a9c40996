#include "plugin/config/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "plugin/config/config.h"
#include "plugin/config/fault_log.h"
#include "test/sanitized.h"

namespace riffle::log_test {
namespace {

struct Line {
  int level;
  unsigned long subsystems;
  std::string text;
  std::string file;
  int line;
};
std::vector<Line> lines;

void keep_line(int level, unsigned long subsystems, const char*, int, const char* format, ...)
    __attribute__((format(printf, 5, 6)));
void keep_line(int level, unsigned long subsystems, const char* file, int line, const char* format,
               ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[256];
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  lines.push_back({level, subsystems, text, file, line});
}

void drop_line(int, unsigned long, const char*, int, const char*, ...) {}

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    lines.clear();
    set_logger(keep_line);
  }
  void TearDown() override {
    set_logger(nullptr);
    set_log_file("", 0);
    unsetenv("RIFFLE_LOG");
    reload_config();
  }
};

TEST_F(LogTest, PassesNcclsLevelsAndSubsystems) {
  setenv("RIFFLE_LOG", "trace", 1);
  reload_config();
  log_warn("a");
  log_info("b");
  log_trace("c");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].level, 2);
  EXPECT_EQ(lines[1].level, 3);
  EXPECT_EQ(lines[2].level, 5);
  for (const Line& line : lines) EXPECT_EQ(line.subsystems, 17U);
}

TEST_F(LogTest, TextIsNeverAFormat) {
  log_warn("100%s %n done");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text, "Riffle: 100%s %n done");
}

TEST_F(LogTest, NoLineCommandsATerminal) {
  log_warn("node1 failed: {}", "\x1b[2J\x07 \x7f\u00e9\n\tend");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].text.find("node1 failed: ?[2J? ?\u00e9\n\tend"), std::string::npos)
      << lines[0].text;
}

TEST_F(LogTest, NamesTheCallsOwnPlace) {
  log_warn("{} of {}", 1, "two");
  const int line = __LINE__ - 1;
  log_warn(std::string("a text"));
  log_warn("{}", static_cast<const char*>("three"));
  log_warn("{} {}", static_cast<const char*>("four"), 5);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2].text, "Riffle: three");
  EXPECT_EQ(lines[3].text, "Riffle: four 5");
  EXPECT_EQ(lines[0].text, "Riffle: 1 of two");
  EXPECT_EQ(lines[0].line, line);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(lines[i].line, line + 1 + i);
  for (const Line& l : lines) EXPECT_NE(l.file.find("log_test.cc"), std::string::npos) << l.file;
}

TEST_F(LogTest, LevelOfTheKnobIsTheMostDetailed) {
  setenv("RIFFLE_LOG", "warn", 1);
  reload_config();
  log_info("dropped");
  log_trace("dropped");
  EXPECT_TRUE(lines.empty());
  setenv("RIFFLE_LOG", "info", 1);
  reload_config();
  log_info("kept");
  log_trace("dropped");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text, "Riffle: kept");
}

TEST_F(LogTest, OfManyFaultsOnlyTheFirstIsAWarning) {
  end_incident();
  log_fault("lost node 3");
  log_fault("lost sender 10.0.0.3");
  log_fault("NET test: lost sender 10.0.0.3");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].level, 2);
  EXPECT_EQ(lines[0].text, "Riffle: lost node 3");
  EXPECT_EQ(lines[1].level, 3);
  EXPECT_EQ(lines[1].text, "Riffle: also: lost sender 10.0.0.3");
  EXPECT_EQ(lines[2].level, 3);
  log_fault("excluded", true);
  EXPECT_EQ(lines.back().level, 2);
  EXPECT_EQ(lines.back().text, "Riffle: excluded");
  end_incident();
  log_fault("lost node 4");
  EXPECT_EQ(lines.back().level, 2);
}

// Many threads write whole lines to stderr, also from a forked child: what comes out is read back
// through a pipe and must be made of unbroken lines.
TEST_F(LogTest, LinesStayWholeBetweenThreadsAndAFork) {
  set_logger(nullptr);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int saved = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  constexpr int kThreads = 4;
  constexpr int kLines = 50;
  const auto write_lines = [] {
    for (int i = 0; i < kLines; ++i) log_warn("one whole line");
  };
  const auto fork_writer = [&] {
    const pid_t child = fork();
    if (child == 0) {
      write_lines();
      raise(
          SIGKILL);  // an exit would let thread sanitizer report the parent's threads into the pipe
    }
    return child;
  };
  // A sanitizer's allocator may be locked by a thread that the child does not have.
  const pid_t early = kIsSanitized ? fork_writer() : -1;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(write_lines);
  const pid_t child = kIsSanitized ? early : fork_writer();
  for (std::thread& thread : threads) thread.join();
  int status = -1;
  waitpid(child, &status, 0);
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(ends[1]);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  std::string expected;
  for (int i = 0; i < (kThreads + 1) * kLines; ++i) expected += "riffle WARN one whole line\n";
  EXPECT_EQ(text, expected);
}

// A folder that is removed with what is in it.
class LogFiles : public LogTest {
 protected:
  void SetUp() override {
    LogTest::SetUp();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    LogTest::TearDown();
    std::filesystem::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::vector<std::string> lines_of(const std::string& path) {
    std::vector<std::string> all;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  static std::string pid() { return std::to_string(getpid()); }

 private:
  const std::string folder_ = ::testing::TempDir() + "log_test" + std::to_string(getpid());
};

TEST_F(LogFiles, LinesHaveTimePlaceAndLevel) {
  set_log_file(path("riffle-%p.log"), 1 << 20);
  log_warn("full");
  log_info("{}", 7);
  ASSERT_EQ(lines.size(), 2U) << "NCCL's logger hears of them, too";
  const std::vector<std::string> written = lines_of(path("riffle-" + pid() + ".log"));
  ASSERT_EQ(written.size(), 2U);
  for (const std::string& line : written) {
    EXPECT_NE(line.find("log_test.cc:"), std::string::npos) << line;
    EXPECT_EQ(line.compare(0, 2, "20"), 0) << line;
  }
  EXPECT_NE(written[0].find(" warning "), std::string::npos) << written[0];
  EXPECT_EQ(written[1].substr(written[1].size() - 2), " 7");
}

TEST_F(LogFiles, AFullFileIsRenamed) {
  set_log_file(path("%p.log"), 64 << 10);
  for (int i = 0; i < 1000; ++i) log_info("{:0100}", i);
  const std::string now = path(pid() + ".log");
  const std::string before = path(pid() + ".1.log");
  EXPECT_LE(std::filesystem::file_size(now), 64U << 10);
  EXPECT_LE(std::filesystem::file_size(before), 64U << 10);
  const std::string last = lines_of(now).back();
  EXPECT_EQ(last.substr(last.size() - 3), "999");
}

TEST_F(LogFiles, WhatCannotBeWrittenIsOneWarning) {
  std::ofstream(path("file")) << "no folder";
  set_log_file(path("file/%p.log"), 1 << 20);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].text.find("RIFFLE_LOG_FILE=" + path("file/%p.log")), std::string::npos);
  set_log_file(path("%x"), 1 << 20);
  EXPECT_NE(lines.back().text.find("accepted are %h host"), std::string::npos);
  log_info("goes on");
  EXPECT_EQ(lines.back().text, "Riffle: goes on");
}

TEST_F(LogFiles, AFullDiskEndsTheFileAndNothingElse) {
  std::filesystem::create_symlink("/dev/full", path("%p.log"));
  const std::string here = path(pid() + ".log");
  std::filesystem::create_symlink("/dev/full", here);
  set_log_file(path("%p.log"), 1 << 20);
  log_info("one");
  log_info("two");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].text, "Riffle: one");
  EXPECT_NE(lines[1].text.find("RIFFLE_LOG_FILE ends here"), std::string::npos) << lines[1].text;
  EXPECT_EQ(lines[2].text, "Riffle: two");
}

// Children that log while eight threads of the parent do: none finds a lock held, and the file
// holds the parent's whole lines alone.
TEST_F(LogFiles, AForkAmongLoggingThreadsFindsNoLockHeld) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer's own locks are held over a fork";
  set_logger(drop_line);
  set_log_file(path("%p.log"), 1 << 30);
  constexpr int kThreads = 8;
  constexpr int kChildren = 40;
  std::atomic<bool> is_over{false};
  std::atomic<int> written{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      while (!is_over) {
        log_info("of the parent");
        ++written;
      }
    });
  }
  for (int c = 0; c < kChildren; ++c) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // ends one that hangs, by a signal
      for (int i = 0; i < 10; ++i) log_info("of a child");
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child " << c << ": " << status;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> all = lines_of(path(pid() + ".log"));
  EXPECT_EQ(static_cast<int>(all.size()), written.load());
  for (const std::string& line : all) {
    ASSERT_EQ(line.compare(0, 2, "20"), 0) << line;
    ASSERT_EQ(line.substr(line.size() - 14), " of the parent") << line;
  }
}

std::atomic<bool> is_reported{false}, may_return{false};
void wait_in_logger(int, unsigned long, const char*, int, const char*, ...) {
  is_reported = true;
  while (!may_return) std::this_thread::yield();
}

// The configuration is read when it is first asked for; a child that another thread's fork makes in
// that moment never sees the end of it, and can log nevertheless.
TEST_F(LogTest, AForkWhileTheConfigurationIsRead) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer's own locks are held over a fork";
  setenv("RIFFLE_LOG", "nonsense", 1);
  is_reported = may_return = false;
  set_logger(wait_in_logger);
  std::thread reads([] { reload_config(); });
  while (!is_reported) std::this_thread::yield();
  set_logger(drop_line);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    log_info("of a child");
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  may_return = true;
  reads.join();
}

// From an exit handler that was there first, so that it runs after all of the library's own would
// have, and from a detached thread that is still at it.
TEST_F(LogFiles, TheLogOutlivesExitHandlers) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer's own locks are held over a fork";
  static std::atomic<int> in_thread;
  const std::string file = path("late.%p");
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    set_logger(drop_line);
    set_log_file(file, 1 << 30);
    std::thread([] {
      while (true) {
        log_info("detached");
        ++in_thread;
      }
    }).detach();
    while (in_thread == 0) std::this_thread::yield();
    std::atexit([] {
      log_info("at exit");
      for (const int before = in_thread; in_thread < before + 100;) std::this_thread::yield();
    });
    std::exit(3);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
  const std::vector<std::string> all = lines_of(path("late." + std::to_string(child)));
  EXPECT_GT(all.size(), 100U);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const std::string& l) { return l.find("at exit") != l.npos; }),
            1);
}

}  // namespace
}  // namespace riffle::log_test
