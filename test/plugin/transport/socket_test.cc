// What the kernel is asked for on both sides of a connection.
#include "plugin/transport/reactor/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <utility>

namespace riffle::socket_test {
namespace {

constexpr int kNone = -1;

int option(int fd, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, IPPROTO_TCP, name, &value, &size) == 0 ? value : kNone;
}

TEST(Socket, LostPacketsAndAcknowledgementsDoNotWaitLong) {
  constexpr int kRtoMin = 45, kDelackMax = 46;  // TCP_RTO_MIN_US, TCP_DELACK_MAX_US
  Endpoint endpoint;
  const Result<Fd> listener = listen_on({.interface = "lo", .address = "127.0.0.1"}, &endpoint);
  ASSERT_TRUE(listener) << listener.status().message();
  const Result<Fd> client = start_connect(to_socket_address(endpoint, 0));
  ASSERT_TRUE(client) << client.status().message();
  pollfd waiting{client->get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&waiting, 1, 10'000), 1);
  ASSERT_TRUE(connect_outcome(client->get()));
  int error = 0;
  const Fd accepted = accept_from(listener->get(), &error);
  ASSERT_EQ(error, 0);
  for (const int fd : {client->get(), accepted.get()}) {
    EXPECT_EQ(option(fd, TCP_NODELAY), 1);
    const int rto = option(fd, kRtoMin), delack = option(fd, kDelackMax);
    if (rto == kNone) GTEST_SKIP() << "before Linux 6.15";
    EXPECT_LE(rto, 20'000) << "8 ms, or what the kernel's clock allows";
    EXPECT_LE(delack, rto) << "else what is only acknowledged late is sent twice";
  }
}

// The bounds are the kernel's.
TEST(Socket, AttemptsAfterAnOutageAreAPartOfThePeerTimeoutApart) {
  constexpr int kRtoMax = 44;  // TCP_RTO_MAX_MS
  constexpr std::uint64_t kSecondNs = 1'000'000'000;
  Endpoint endpoint;
  const Result<Fd> socket = listen_on({.interface = "lo", .address = "127.0.0.1"}, &endpoint);
  ASSERT_TRUE(socket) << socket.status().message();
  if (option(socket->get(), kRtoMax) == kNone) {
    EXPECT_FALSE(retry_within(socket->get(), kSecondNs));
    GTEST_SKIP() << "before Linux 6.15";
  }
  for (const auto& [timeout_s, ms] : {std::pair{60U, 7500}, {1U, 1000}, {86400U, 120'000}}) {
    EXPECT_TRUE(retry_within(socket->get(), timeout_s * kSecondNs)) << timeout_s;
    EXPECT_EQ(option(socket->get(), kRtoMax), ms) << timeout_s;
  }
}

}  // namespace
}  // namespace riffle::socket_test
