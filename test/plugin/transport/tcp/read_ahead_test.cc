// How a stream reads: small frames by few system calls, and little behind large payloads, as what
// is read ahead is copied.
#include <sys/syscall.h>
#include <unistd.h>

#include <random>

#include "test/plugin/transport/link_harness.h"

namespace riffle::read_ahead_test {
namespace {

std::atomic<int> calls{0};
std::atomic<std::size_t> most_behind{0};  // a payload, in one call

void note(const msghdr& message) {
  ++calls;
  if (message.msg_iovlen < 2) return;
  most_behind = std::max<std::size_t>(most_behind, message.msg_iov[1].iov_len);
}

}  // namespace
}  // namespace riffle::read_ahead_test

// In the place of libc's, for this program.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  riffle::read_ahead_test::note(*message);
  return ::syscall(SYS_recvmsg, fd, message, flags);
}

namespace riffle::read_ahead_test {
namespace {

class ReadAhead : public LinkTest {
 protected:
  // All of it is there before the link reads.
  void write_at_once(std::size_t frames, std::size_t bytes) {
    const std::size_t had = sink_.count();
    reactor_->run_and_wait([&] {
      for (std::size_t i = 0; i < frames; ++i) write_frame({}, std::string(bytes, 'f'));
      calls = 0;
      most_behind = 0;
    });
    EXPECT_TRUE(eventually([&] { return sink_.count() == had + frames; }));
  }
};

TEST_F(ReadAhead, ManySmallFramesComeByFewCalls) {
  start(1);
  write_at_once(80, 1 << 10);
  EXPECT_LE(calls, 10);  // 4 KiB at a time it takes 22
  write_at_once(80, 64);
  EXPECT_LE(calls, 3);
}

TEST_F(ReadAhead, LittleIsReadBehindLargePayloads) {
  start(1);
  write_at_once(80, 1 << 10);
  write_at_once(1, 64 << 10);
  write_at_once(2, 64 << 10);
  EXPECT_LE(most_behind, std::size_t{4} << 10);
  EXPECT_GT(most_behind, 0U);
}

TEST_F(ReadAhead, FramesOfAllSizesArriveInOrderWhateverPortionsTheyComeIn) {
  start(1);
  std::mt19937 random(5);
  std::string wire;
  std::vector<std::string> payloads;
  for (int i = 0; i < 600; ++i) {
    const std::size_t most = i % 50 == 49 ? 100'000 : i % 3 == 0 ? 6'000 : 100;
    payloads.emplace_back(random() % (most + 1), static_cast<char>('a' + i % 26));
    const FrameBytes header =
        encode({.communicator = kCommunicator,
                .length = static_cast<std::uint32_t>(payloads.back().size())});
    wire.append(reinterpret_cast<const char*>(header.data()), header.size());
    wire += payloads.back();
  }
  for (std::size_t at = 0; at < wire.size();) {
    const std::size_t portion = std::min<std::size_t>(random() % 90'000, wire.size() - at);
    reactor_->run_and_wait([&] { write(&wire[at], portion); });
    reactor_->run_and_wait([] {});  // lets it read
    at += portion;
  }
  EXPECT_TRUE(eventually([&] { return sink_.count() == payloads.size(); }));
  EXPECT_EQ(sink_.frames, payloads);
}

}  // namespace
}  // namespace riffle::read_ahead_test
