#include "plugin/config/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
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
};
std::vector<Line> lines;

void keep_line(int level, unsigned long subsystems, const char*, int, const char* format, ...)
    __attribute__((format(printf, 5, 6)));
void keep_line(int level, unsigned long subsystems, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[256];
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  lines.push_back({level, subsystems, text});
}

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    lines.clear();
    set_logger(keep_line);
  }
  void TearDown() override {
    set_logger(nullptr);
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
  log_fault("left behind", true);
  EXPECT_EQ(lines.back().level, 2);
  EXPECT_EQ(lines.back().text, "Riffle: left behind");
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

}  // namespace
}  // namespace riffle::log_test
