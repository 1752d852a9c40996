// Which nonces are of one process.
#include "plugin/transport/handshake/process_mark.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace riffle::process_mark_test {
namespace {

TEST(ProcessMark, NoncesOfAProcessDifferAndTellThatTheyAreOfOne) {
  const std::uint64_t a = next_nonce(), b = next_nonce();
  EXPECT_NE(a, b);
  EXPECT_EQ(process_of(a), process_of(b));
}

TEST(ProcessMark, AForkedChildHasAnother) {
  const std::uint64_t own = next_nonce();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::uint64_t nonce = next_nonce();
    ::_exit(::write(ends[1], &nonce, sizeof nonce) == sizeof nonce ? 0 : 1);
  }
  std::uint64_t of_child = 0;
  EXPECT_EQ(::read(ends[0], &of_child, sizeof of_child), static_cast<ssize_t>(sizeof of_child));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_NE(process_of(of_child), process_of(own));
  EXPECT_EQ(process_of(next_nonce()), process_of(own));
}

}  // namespace
}  // namespace riffle::process_mark_test
