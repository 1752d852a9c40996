// Who gets in and who does not: the messages, and strangers knocking at a real listener.
#include "plugin/transport/handshake/handshake.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/handshake/acceptor.h"
#include "plugin/transport/handshake/connector.h"
#include "plugin/transport/handshake/stream_set.h"
#include "plugin/transport/tcp/tcp_listener.h"
#include "plugin/version.h"
#include "test/plugin/transport/transport_harness.h"

namespace riffle::handshake_test {
namespace {

// (The machine is read by a thread of its own, which says what it found at any time.)
int warnings_in(const std::string& log) {
  int count = 0;
  for (std::size_t at = 0; (at = log.find("WARN", at)) != std::string::npos; ++at) ++count;
  return count;
}

const Secret kSecret = {1, 2, 3, 4, 5, 6, 7, 8};
const Hello kHello = {.communicator = 77, .session = 5, .rank = 3, .stream = 1, .streams = 2};

// Each of them is valid alone.
TEST(StreamSet, AnotherNumberOfStreamsBeginsAnew) {
  const auto connection = [] {
    return Connection(Fd::make([] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }));
  };
  const auto hello = [](int stream, int streams) {
    Hello h = kHello;
    h.stream = static_cast<decltype(h.stream)>(stream);
    h.streams = static_cast<decltype(h.streams)>(streams);
    return h;
  };
  StreamSet set;
  set.add(connection(), hello(2, 3));
  set.add(connection(), hello(0, 2));
  EXPECT_FALSE(set.is_complete());
  set.add(connection(), hello(1, 2));
  ASSERT_TRUE(set.is_complete());
  const std::vector<Connection> all = set.take();
  ASSERT_EQ(all.size(), 2u);
  for (const Connection& c : all) EXPECT_TRUE(c.socket.is_open());
}

TEST(Handshake, BothSidesProveTheSecret) {
  const ChallengeBytes challenge = make_challenge();
  ASSERT_TRUE(check_challenge(challenge));
  const HelloBytes hello = make_hello(kHello, kSecret, challenge);
  const auto opened = open_hello(hello, kSecret, challenge);
  ASSERT_TRUE(opened) << opened.status().message();
  EXPECT_EQ(opened->communicator, 77u);
  EXPECT_EQ(opened->session, 5u);
  EXPECT_EQ(opened->rank, 3u);
  EXPECT_EQ(opened->stream, 1u);
  EXPECT_EQ(opened->streams, 2u);
  EXPECT_TRUE(check_welcome(make_welcome(hello, kSecret), hello, kSecret));
}

TEST(Handshake, NothingPassesWithoutTheSecretOrAfterAChange) {
  const ChallengeBytes challenge = make_challenge();
  const HelloBytes good = make_hello(kHello, kSecret, challenge);
  Secret other = kSecret;
  other[15] ^= 1;
  EXPECT_FALSE(open_hello(good, other, challenge));
  EXPECT_FALSE(open_hello(good, kSecret, make_challenge())) << "a replay";
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    HelloBytes bad = good;
    bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1u << bit % 8);
    ASSERT_FALSE(open_hello(bad, kSecret, challenge)) << bit;
  }
  const WelcomeBytes welcome = make_welcome(good, kSecret);
  EXPECT_FALSE(check_welcome(make_welcome(good, other), good, kSecret));
  for (std::size_t bit = 0; bit < 8 * welcome.size(); ++bit) {
    WelcomeBytes bad = welcome;
    bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1u << bit % 8);
    ASSERT_FALSE(check_welcome(bad, good, kSecret)) << bit;
  }
}

TEST(Handshake, AnotherVersionIsNamedOnBothSides) {
  ChallengeBytes challenge = make_challenge();
  challenge[4] = 9;
  challenge[5] = 8;
  challenge[6] = 7;
  const std::string at_connector = check_challenge(challenge).message();
  EXPECT_NE(at_connector.find("7.8.9"), std::string::npos) << at_connector;
  EXPECT_NE(at_connector.find(kVersion), std::string::npos) << at_connector;
  HelloBytes hello = make_hello(kHello, kSecret, challenge);
  hello[6] = 2;
  const std::string at_listener = check_hello_prefix(hello.data()).message();
  EXPECT_NE(at_listener.find("2" + std::string(kVersion).substr(1)), std::string::npos)
      << at_listener;
  challenge = make_challenge();
  challenge[8] = 99;
  EXPECT_NE(check_challenge(challenge).message().find("wire version 99"), std::string::npos);
}

// A listener behind which everybody who is admitted is counted.
class AcceptorTest : public ::testing::Test, public Acceptor::Owner {
 protected:
  AcceptorTest() {
    auto bound = TcpListener::bind(settings(), 0, 0);
    EXPECT_TRUE(bound);
    listener_ = std::move(*bound);
    content_ = listener_->content();
    reactor_->run_and_wait([&] {
      acceptor_ = std::make_unique<Acceptor>(*reactor_, listener_->take_sockets(), content_, this);
    });
    ::testing::internal::CaptureStderr();
  }
  ~AcceptorTest() override {
    reactor_->run_and_wait([&] { acceptor_.reset(); });
    if (!has_log_) ::testing::internal::GetCapturedStderr();
  }
  Status admit(const Hello& hello) override {
    return hello.rank == 66 ? remote_error("no place for node 66") : Status::ok();
  }
  void joined(Connection connection, const Hello&) override {
    sockets_.push_back(std::move(connection.socket));
    ++joined_;
  }

  // A blocking connection to the listener, as anybody can make one.
  int knock() {
    const SocketAddress to = to_socket_address(content_.endpoints[0], 0);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to.storage), to.size), 0);
    return fd;
  }
  void say(int fd, const void* data, std::size_t size) {
    EXPECT_EQ(::send(fd, data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  ChallengeBytes challenge_of(int fd) {
    ChallengeBytes challenge;
    EXPECT_EQ(::recv(fd, challenge.data(), challenge.size(), MSG_WAITALL), 32);
    return challenge;
  }
  // The listener hangs up, having said at most its challenge.
  void expect_dropped(int fd) {
    const timeval limit = {.tv_sec = 8, .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char waste[100];
    ssize_t n;
    std::size_t said = 0;
    while ((n = ::recv(fd, waste, sizeof waste, 0)) > 0) said += static_cast<std::size_t>(n);
    EXPECT_TRUE(n == 0 || errno == ECONNRESET) << n << " " << errno;
    EXPECT_LE(said, kChallengeBytes);
    ::close(fd);
    EXPECT_EQ(joined_, 0);
  }
  // Exactly one warning, which names the visitor's address and the reason.
  void expect_one_line(const std::string& reason) {
    reactor_->run_and_wait([] {});
    const std::string log = ::testing::internal::GetCapturedStderr();
    has_log_ = true;
    EXPECT_EQ(warnings_in(log), 1) << log;
    EXPECT_NE(log.find("dropped a connection from 127.0.0.1:"), std::string::npos) << log;
    EXPECT_NE(log.find(reason), std::string::npos) << log;
  }
  void expect_a_friend_gets_in() {
    std::atomic<bool> done{false};
    std::unique_ptr<Connector> connector;
    Hello hello = kHello;
    hello.communicator = content_.communicator;
    Fd mine;
    reactor_->run_and_wait([&] {
      connector = std::make_unique<Connector>(
          *reactor_,
          ConnectorOptions{
              .to = content_, .hello = hello, .deadline_ns = Reactor::now_ns() + 5'000'000'000},
          [&](Result<Connection> made) {
            EXPECT_TRUE(made) << made.status().message();
            if (made) mine = std::move(made->socket);
            done = true;
          });
    });
    EXPECT_TRUE(eventually([&] { return done.load() && joined_ == 1; }));
    reactor_->run_and_wait([&] { connector.reset(); });
  }

  std::shared_ptr<Reactor> reactor_ = Reactor::acquire(settings());
  std::unique_ptr<TcpListener> listener_;
  HandleContent content_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<Fd> sockets_;
  std::atomic<int> joined_{0};
  bool has_log_ = false;
};

TEST_F(AcceptorTest, AStrangerWithAnotherProtocol) {
  const int fd = knock();
  say(fd, "GET / HTTP/1.1\r\n\r\n", 18);
  expect_dropped(fd);
  expect_one_line("wrong magic");
  expect_a_friend_gets_in();
}

TEST_F(AcceptorTest, AStrangerWhoHangsUp) {
  const int fd = knock();
  challenge_of(fd);
  ::close(fd);
  EXPECT_TRUE(eventually([&] { return joined_ == 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  expect_one_line("hung up before it introduced itself");
  expect_a_friend_gets_in();
}

TEST_F(AcceptorTest, AWrongSecret) {
  const int fd = knock();
  Hello hello = kHello;
  hello.communicator = content_.communicator;
  const HelloBytes bytes = make_hello(hello, kSecret, challenge_of(fd));
  say(fd, bytes.data(), bytes.size());
  expect_dropped(fd);
  expect_one_line("secret");
  expect_a_friend_gets_in();
}

TEST_F(AcceptorTest, AnotherCommunicator) {
  const int fd = knock();
  const HelloBytes bytes = make_hello(kHello, content_.secret, challenge_of(fd));
  say(fd, bytes.data(), bytes.size());
  expect_dropped(fd);
  expect_one_line("another communicator");
  expect_a_friend_gets_in();
}

TEST_F(AcceptorTest, AnotherVersionThatGoesAfterTheFirstWords) {
  const int fd = knock();
  HelloBytes bytes = make_hello(kHello, content_.secret, challenge_of(fd));
  bytes[6] = 5;
  say(fd, bytes.data(), kVersionPrefixBytes);
  ::shutdown(fd, SHUT_WR);
  expect_dropped(fd);
  expect_one_line("Riffle 5" + std::string(kVersion).substr(1));
}

TEST_F(AcceptorTest, NoPlace) {
  const int fd = knock();
  Hello hello = kHello;
  hello.communicator = content_.communicator;
  hello.rank = 66;
  const HelloBytes bytes = make_hello(hello, content_.secret, challenge_of(fd));
  say(fd, bytes.data(), bytes.size());
  expect_dropped(fd);
  expect_one_line("no place for node 66");
}

TEST_F(AcceptorTest, OneWhoTakesForEverIsDroppedAfterFiveSeconds) {
  const int fd = knock();
  const HelloBytes bytes = make_hello(kHello, content_.secret, challenge_of(fd));
  say(fd, bytes.data(), 20);
  const std::uint64_t start = Reactor::now_ns();
  expect_dropped(fd);
  EXPECT_GT(Reactor::now_ns() - start, 4'000'000'000u);
  EXPECT_LT(Reactor::now_ns() - start, 6'500'000'000u);
  expect_one_line("20 of 120 bytes");
}

TEST_F(AcceptorTest, ACrowdOfSilentStrangersIsBoundedAndDoesNotKeepFriendsOut) {
  std::vector<int> crowd;
  const std::size_t before = open_descriptors();
  for (std::size_t i = 0; i < Acceptor::kMaxPending + 50; ++i) crowd.push_back(knock());
  // At most so many of one address hold a descriptor of the library.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LE(open_descriptors(), before + crowd.size() + Acceptor::kMaxPendingOfOne);
  for (const int fd : crowd) ::close(fd);
  expect_a_friend_gets_in();
}

TEST(Connector, ARefusalEndsTheAttemptsSoon) {
  auto bound = TcpListener::bind(settings(), 0, 0);
  HandleContent wrong = (*bound)->content();
  wrong.secret = kSecret;
  struct Nobody : Acceptor::Owner {
    Status admit(const Hello&) override { return Status::ok(); }
    void joined(Connection, const Hello&) override { ADD_FAILURE(); }
  } nobody;
  const auto reactor = Reactor::acquire(settings());
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<Connector> connector;
  std::promise<std::string> outcome;
  ::testing::internal::CaptureStderr();
  reactor->run_and_wait([&] {
    acceptor = std::make_unique<Acceptor>(*reactor, (*bound)->take_sockets(), (*bound)->content(),
                                          &nobody);
    connector = std::make_unique<Connector>(
        *reactor,
        ConnectorOptions{
            .to = wrong, .hello = kHello, .deadline_ns = Reactor::now_ns() + 60'000'000'000},
        [&](Result<Connection> made) { outcome.set_value(made.status().message()); });
  });
  auto future = outcome.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_NE(future.get().find("refused this node's introduction"), std::string::npos);
  reactor->run_and_wait([&] {
    connector.reset();
    acceptor.reset();
  });
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(warnings_in(log), 2) << log;
  EXPECT_NE(log.find("dropped 2 more connections"), std::string::npos) << log;
}

TEST(Connector, ADeadEndpointIsSteppedOver) {
  auto bound = TcpListener::bind(settings(), 0, 0);
  HandleContent to = (*bound)->content();
  Endpoint dead = to.endpoints[0];
  dead.port = 1;  // nobody listens there
  to.endpoints.insert(to.endpoints.begin(), dead);
  struct Owner : Acceptor::Owner {
    Status admit(const Hello&) override { return Status::ok(); }
    void joined(Connection made, const Hello&) override { kept = std::move(made.socket); }
    Fd kept;
  } owner;
  const auto reactor = Reactor::acquire(settings());
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<Connector> connector;
  std::promise<bool> outcome;
  reactor->run_and_wait([&] {
    acceptor = std::make_unique<Acceptor>(*reactor, (*bound)->take_sockets(), to, &owner);
    connector = std::make_unique<Connector>(
        *reactor,
        ConnectorOptions{.to = to,
                         .hello = {.communicator = to.communicator},
                         .deadline_ns = Reactor::now_ns() + 5'000'000'000},
        [&](Result<Connection> made) { outcome.set_value(made.is_ok()); });
  });
  auto future = outcome.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_TRUE(future.get());
  reactor->run_and_wait([&] {
    connector.reset();
    acceptor.reset();
  });
}

}  // namespace
}  // namespace riffle::handshake_test
