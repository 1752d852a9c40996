// Nodes of other releases, older and newer ones, are refused by one sentence that says what both
// run and what to do: their handles, their handshakes at either side of NET, whatever both were
// told about encryption, and their frames.
#include <arpa/inet.h>
#include <sys/socket.h>

#include "plugin/net/net_service.h"
#include "plugin/transport/handshake/link_keys.h"
#include "plugin/transport/reactor/socket.h"
#include "plugin/version.h"
#include "test/compat/records.h"
#include "test/plugin/transport/transport_harness.h"

namespace riffle::compat::other_versions_test {
namespace {

constexpr std::size_t kVersionAt = 4, kWireVersionAt = 8;
constexpr std::uint32_t kNextVersion = kPluginVersion + (1 << 8);

// One line that names this version and the other, and the remedy once.
void expect_sentence(const std::string& text, const std::string& other) {
  EXPECT_NE(text.find("Riffle " + other), std::string::npos) << text;
  EXPECT_NE(text.find("this node runs " + std::string(kVersion)), std::string::npos) << text;
  const std::string remedy = "install the same version on all nodes";
  const std::size_t at = text.find(remedy);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find(remedy, at + 1), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

template <class Array>
Array of_next_version(Array bytes) {
  put(&bytes[kVersionAt], kNextVersion);
  return bytes;
}
template <class Array>
Array array_of(const Bytes& bytes) {
  Array out{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), out.size()), out.begin());
  return out;
}

// All handshakes that were recorded of other releases.
std::map<std::string, Records> other_releases() {
  std::map<std::string, Records> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RIFFLE_RECORDS)) {
    const std::string name = entry.path().stem().string();
    const std::string kind = "handshake-";
    if (!name.starts_with(kind) || name.substr(kind.size()) == kVersion) continue;
    all.emplace(name.substr(kind.size()), Records(entry.path()));
  }
  return all;
}

TEST(OtherVersions, HandlesAndHandshakesOfReleasesAreRefused) {
  const auto releases = other_releases();
  EXPECT_TRUE(releases.contains("0.1.0"));
  for (const auto& [release, records] : releases) {
    Handle handle;
    handle.bytes = array_of<decltype(handle.bytes)>(records.at("handle"));
    expect_sentence(decode(handle).status().message(), release);
    const auto challenge = array_of<ChallengeBytes>(records.at("challenge"));
    expect_sentence(check_challenge(challenge).message(), release);
    expect_sentence(check_hello_prefix(records.at("hello").data()).message(), release);
  }
}

TEST(OtherVersions, FramesAreRefused) {
  Records old(record_of(3, "frames"));
  std::map<std::string, int> others = {{hex_of(old.at("data")), 3}};
  FrameBytes next = encode(FrameHeader());
  next[kVersionAt] = kFrameVersion + 1;
  others[hex_of(bytes_of(next))] = kFrameVersion + 1;
  for (const auto& [hex, version] : others) {
    const std::string text = decode(array_of_hex<FrameBytes>(hex)).status().message();
    EXPECT_EQ(text, "frame version " + std::to_string(version) + ", this side speaks version " +
                        std::to_string(kFrameVersion) + ": install the same version on all nodes");
  }
}

// Two builds of one release: the wire's own number tells.
TEST(OtherVersions, AnotherWireOfTheSameReleaseIsRefused) {
  ChallengeBytes challenge = make_challenge();
  challenge[kWireVersionAt] = kFrameVersion + 1;
  EXPECT_EQ(check_challenge(challenge).message(),
            "it speaks wire version " + std::to_string(kFrameVersion + 1) + ", this node speaks " +
                std::to_string(kFrameVersion) + ": install the same version on all nodes");
}

// A peer of another release, as sockets see it.
struct Peer {
  std::string version;
  Bytes challenge, hello;
};
Peer older() {
  const Records records(record_of(3, "handshake-0.1.0"));
  return {"0.1.0", records.at("challenge"), records.at("hello")};
}
Peer newer(bool encrypts) {
  const Credentials own({1}, {.is_on = encrypts});
  const ChallengeBytes challenge = of_next_version(make_challenge(own.offer()));
  return {version_text(kNextVersion), bytes_of(challenge),
          bytes_of(of_next_version(make_hello({}, own, challenge)))};
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    EXPECT_GE(fd, 0) << errno_text(errno);
    const timeval limit = {.tv_sec = 4, .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }
  void say(const Bytes& bytes) {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // All that comes until the other end hangs up.
  Bytes hear() {
    Bytes all(1000);
    std::size_t have = 0;
    ssize_t n;
    while ((n = ::recv(fd_, all.data() + have, all.size() - have, 0)) > 0) {
      have += static_cast<std::size_t>(n);
    }
    EXPECT_TRUE(n == 0 || errno == ECONNRESET) << errno_text(errno);
    all.resize(have);
    return all;
  }

 private:
  int fd_;
};

int connected_to(const Endpoint& endpoint) {
  const SocketAddress to = to_socket_address(endpoint, 0);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to.storage), to.size), 0);
  return fd;
}

// Whether this node encrypts, whether the peer does.
class OtherPeers : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  static TransportOptions own() {
    TransportOptions options = settings();
    options.encryption = {.is_on = std::get<0>(GetParam())};
    return options;
  }
  static std::vector<Peer> peers() { return {older(), newer(std::get<1>(GetParam()))}; }
  static Result<net::SendConnection*> connect(Handle* handle) {
    return net::connect(own(), options_from(config()).net, 0, handle);
  }
};
INSTANTIATE_TEST_SUITE_P(Encryption, OtherPeers,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()));

TEST_P(OtherPeers, AreRefusedByAListenerThatThenTakesItsOwn) {
  for (const Peer& peer : peers()) {
    Handle handle;
    const auto listener = net::listen(own(), 0, 0, &handle);
    ASSERT_TRUE(listener) << listener.status().message();
    ::testing::internal::CaptureStderr();
    {
      Socket stranger(connected_to(decode(handle)->endpoints.at(0)));
      stranger.say(peer.hello);
      EXPECT_LE(stranger.hear().size(), kChallengeBytes);
    }
    // The line was written before the listener hung up.
    std::string line = ::testing::internal::GetCapturedStderr();
    const std::size_t at = line.find("riffle WARN dropped a connection from 127.0.0.1:");
    ASSERT_NE(at, std::string::npos) << line;
    expect_sentence(line.substr(at, line.find('\n', at) - at), peer.version);
    net::SendConnection* sender = nullptr;
    net::RecvConnection* receiver = nullptr;
    EXPECT_TRUE(eventually([&] {
      if (sender == nullptr) sender = *connect(&handle);
      if (receiver == nullptr) receiver = *net::accept(*listener);
      return sender != nullptr && receiver != nullptr;
    }));
    if (sender != nullptr) net::close(sender);
    if (receiver != nullptr) net::close(receiver);
    net::close(*listener);
  }
}

TEST_P(OtherPeers, AreRefusedByAConnectorThatTellsItsOwnVersion) {
  for (const Peer& peer : peers()) {
    Socket listening(::socket(AF_INET, SOCK_STREAM, 0));
    Endpoint endpoint = {.address = {127, 0, 0, 1}};
    SocketAddress address = to_socket_address(endpoint, 0);
    ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address.storage), address.size),
              0);
    ASSERT_EQ(::listen(listening.get(), 8), 0);
    ASSERT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address.storage),
                            &address.size),
              0);
    endpoint.port = ntohs(reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port);
    TransportOptions options = own();
    Handle handle = encode(HandleContent{.communicator = 7,
                                         .plugin_version = kPluginVersion,
                                         .secret = {1},
                                         .encryption = std::uint8_t{options.encryption.is_on},
                                         .endpoints = {endpoint}});
    std::string error;
    const auto has_failed = [&] {
      if (const auto made = connect(&handle); !made) error = made.status().message();
      return !error.empty();
    };
    EXPECT_FALSE(has_failed()) << error;
    Socket accepted(::accept(listening.get(), nullptr, nullptr));
    accepted.say(peer.challenge);
    EXPECT_TRUE(eventually(has_failed));
    expect_sentence(error, peer.version);
    // By which the other release names both versions in its log.
    const Bytes heard = accepted.hear();
    ASSERT_EQ(heard.size(), kVersionPrefixBytes);
    EXPECT_EQ(hex_of(heard),
              hex_of(Bytes{'R', 'F', 'L', 'O', kPluginVersion & 255, kPluginVersion >> 8 & 255,
                           kPluginVersion >> 16 & 255, 0}));
  }
}

}  // namespace
}  // namespace riffle::compat::other_versions_test
