// What a link was given before close() reaches the peer, though the process ends right after
// (base/deliveries.h).
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "plugin/transport/base/deliveries.h"
#include "plugin/transport/base/errno_text.h"
#include "test/plugin/transport/link_harness.h"

namespace riffle::link_delivery_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFrames = 160;  // 10 MiB, more than two kernels take
constexpr std::size_t kFrameBytes = 64 << 10;

// A link over the loopback TCP whose peer takes nothing yet, closed.
class LinkDelivery : public LinkTest {
 protected:
  LinkDelivery() {
    is_over_tcp_ = true;
    deliveries_ = std::make_shared<Deliveries>();
  }
  void send_and_close() {
    send_frames(kFrames);
    reactor_->run_and_wait([&] { std::exchange(link_, nullptr)->close(); });
  }
};

// The peer itself stays.
TEST_F(LinkDelivery, WaitsUntilThePeersMachineHasAll) {
  start(2);
  send_and_close();
  EXPECT_FALSE(deliveries_->wait(300ms));
  std::size_t frames = 0;
  EXPECT_TRUE(eventually([&] {
    for (std::size_t stream = 0; stream < 2; ++stream) {
      if (has_anything(stream)) frames += read_frames(stream, 1).size();
    }
    return frames == kFrames + 2;  // a goodbye on each stream
  }));
  EXPECT_TRUE(deliveries_->wait(3s));
}

TEST_F(LinkDelivery, EndsWithALinkWhosePeerTakesNothing) {
  start(1, {.drain_ns = 300'000'000});
  send_and_close();
  EXPECT_TRUE(deliveries_->wait(3s));
}

TEST_F(LinkDelivery, EndsWithALinkThatBreaks) {
  start(1);
  send_and_close();
  EXPECT_FALSE(deliveries_->wait(50ms));
  far_.clear();
  EXPECT_TRUE(deliveries_->wait(3s));
}

TEST_F(LinkDelivery, IsNoneOfALinkThatIsAborted) {
  start(1);
  send_frames(kFrames);
  reactor_->run_and_wait([&] { std::exchange(link_, nullptr)->abort(); });
  EXPECT_TRUE(deliveries_->wait(0s));
}

[[noreturn]] void send_close_and_exit(int socket) {
  const auto reactor = Reactor::acquire(settings());
  const auto deliveries = std::make_shared<Deliveries>();
  const std::vector<std::byte> payload(kFrameBytes);
  LinkRecorder sink;
  reactor->run_and_wait([&] {
    std::vector<Connection> connections;
    connections.emplace_back(Fd::make([&] { return socket; }));
    const auto link = TcpLink::create(
        *reactor, std::move(connections), {.peer = "the test"},
        {.peer = "the test", .communicator = kCommunicator, .deliveries = deliveries}, &sink);
    for (std::size_t i = 0; i < kFrames; ++i) link->send(numbered(i, kFrameBytes), payload, 0, 0);
    link->close();
  });
  ::_exit(deliveries->wait(20s) ? 0 : 1);
}

// The peer goes on sending meanwhile, which no process reads any more in the end.
TEST(LinkDeliveryAtExit, NothingIsLost) {
  // A child of a process with threads could start none of its own under a sanitizer.
  ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }));
  int ends[2] = {-1, -1};
  connect_over_tcp(ends);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) send_close_and_exit(ends[0]);
  ::close(ends[0]);
  const FrameBytes heartbeat = encode({.type = FrameType::kHeartbeat});
  std::size_t received = 0;
  int error = 0;
  const auto has_ended = [&] {
    (void)::send(ends[1], heartbeat.data(), heartbeat.size(), MSG_NOSIGNAL);
    char buffer[64 << 10];
    const ssize_t n = ::recv(ends[1], buffer, sizeof buffer, 0);
    if (n > 0) received += static_cast<std::size_t>(n);
    if (n < 0 && errno != EAGAIN) error = errno;
    return n == 0 || error != 0;
  };
  EXPECT_TRUE(eventually(has_ended, 20'000));
  EXPECT_EQ(error, 0) << errno_text(error);
  EXPECT_GE(received, kFrames * (kFrameHeaderBytes + kFrameBytes) + kFrameHeaderBytes);
  ::close(ends[1]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace riffle::link_delivery_test
