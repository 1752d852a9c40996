// Encrypted links, with the test in the middle of the wire: what it may do, and what ends the link.
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <functional>
#include <random>

#include "plugin/transport/tcp/tcp_link.h"
#include "test/plugin/transport/transport_harness.h"
#include "test/sanitized.h"

namespace riffle::encrypted_link_test {
namespace {

constexpr std::uint64_t kCommunicator = 0xc0ffee;
using Wire = std::vector<std::byte>;

// Two links in one process; what one sends goes through the test's hands.
class EncryptedLink : public ::testing::Test {
 protected:
  struct End {
    RecordingSink sink;
    std::shared_ptr<LinkChannel> link;
    Fd far;  // the test's end of its wire
  };

  void start(Cipher cipher = Cipher::kChaCha20Poly1305) {
    StreamKeysPtr a = make_locked<StreamKeys>(), b = make_locked<StreamKeys>();
    const Key there = {1}, back = {2};
    a->out.start(cipher, there, 5);
    b->in.start(cipher, there, 5);
    b->out.start(cipher, back, 5);
    a->in.start(cipher, back, 5);
    join(&a_, std::move(a));
    join(&b_, std::move(b));
  }
  void stop() {
    reactor_->run_and_wait([&] {
      for (End* end : {&a_, &b_}) {
        if (end->link != nullptr) end->link->abort();
        end->link.reset();
      }
    });
  }
  ~EncryptedLink() override { stop(); }

  void join(End* end, StreamKeysPtr keys) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    end->far = Fd::make([&] { return ends[1]; });
    std::vector<Connection> streams;
    streams.emplace_back(Fd::make([&] { return ends[0]; }), std::move(keys));
    reactor_->run_and_wait([&] {
      end->link =
          TcpLink::create(*reactor_, std::move(streams), {.peer = "the other end"},
                          {.peer = "the other end", .communicator = kCommunicator}, &end->sink);
    });
  }

  void send(std::uint64_t number, std::span<const std::byte> payload,
            FrameType type = FrameType::kData) {
    reactor_->run_and_wait([&] {
      FrameHeader header = numbered(number, payload.size());
      header.type = type;
      a_.link->send(header, payload, number, 0);
    });
  }
  // What A has put on the wire, once it is `size` bytes.
  Wire take(std::size_t size) {
    Wire wire;
    EXPECT_TRUE(eventually([&] {
      std::byte room[64 << 10];
      const ssize_t n = ::recv(a_.far.get(), room, std::min(sizeof room, size - wire.size()), 0);
      if (n > 0) wire.insert(wire.end(), room, room + n);
      return wire.size() == size;
    }));
    return wire;
  }
  void give(std::span<const std::byte> wire) {
    while (!wire.empty()) {
      const ssize_t n = ::send(b_.far.get(), wire.data(), wire.size(), MSG_NOSIGNAL);
      if (n > 0) wire = wire.subspan(static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN) return;  // the link has ended already
    }
  }
  void expect_refused() {
    EXPECT_TRUE(b_.sink.wait([](auto& s) { return s.lost_.contains(0); }));
    EXPECT_NE(b_.sink.lost_[0].find("does not open with this connection's key"), std::string::npos)
        << b_.sink.lost_[0];
  }

  std::shared_ptr<Reactor> reactor_ = Reactor::acquire(settings());
  End a_, b_;
};

Wire text(std::size_t size, char fill = 'x') { return Wire(size, static_cast<std::byte>(fill)); }

TEST_F(EncryptedLink, CarriesFramesOfAllSizesInOrder) {
  for (const Cipher cipher : {Cipher::kChaCha20Poly1305, Cipher::kAes256Gcm}) {
    if ((own_ciphers() & set_of(cipher)) == 0) continue;
    start(cipher);
    const std::size_t before = a_.sink.sent_.size(), had = b_.sink.frames_.size();
    std::mt19937 random(5);
    std::deque<Wire> payloads;
    for (const std::size_t size :
         {0, 1, 15, 16, 17, 16383, 16384, 16385, 32768, 100'000, 4 << 20, 0, 0, 3}) {
      Wire& payload = payloads.emplace_back(size);
      for (std::byte& b : payload) b = static_cast<std::byte>(random());
    }
    std::size_t wire_bytes = 0;
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      send(i, payloads[i], i % 2 == 0 ? FrameType::kData : FrameType::kMessage);
      wire_bytes += sealed_frame_bytes(payloads[i].size());
    }
    std::thread carrier([&] {  // in odd pieces
      for (std::size_t left = wire_bytes; left > 0;) {
        const std::size_t size = std::min<std::size_t>(left, 1 + random() % 30'000);
        give(take(size));
        left -= size;
      }
    });
    EXPECT_TRUE(b_.sink.wait([&](auto& s) { return s.frames_.size() == had + payloads.size(); }));
    carrier.join();
    EXPECT_TRUE(a_.sink.wait([&](auto& s) { return s.sent_.size() == before + payloads.size(); }));
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      EXPECT_EQ(number_of(b_.sink.frames_[had + i].header), i);
      EXPECT_TRUE(b_.sink.frames_[had + i].payload == payloads[i]) << i;
    }
    stop();
  }
}

TEST_F(EncryptedLink, NothingOfAFrameIsOnTheWire) {
  start();
  const Wire payload = text(20'000, 'S');
  send(0x4142434445464748, payload);
  const Wire wire = take(sealed_frame_bytes(payload.size()));
  const std::string_view bytes(reinterpret_cast<const char*>(wire.data()), wire.size());
  EXPECT_EQ(bytes.find("SSSS"), std::string_view::npos);
  EXPECT_EQ(bytes.find("RFL"), std::string_view::npos);  // the header's magic
  EXPECT_EQ(bytes.find("HGFEDCBA"), std::string_view::npos);
}

TEST_F(EncryptedLink, EveryFlippedBitEndsIt) {
  const Wire payload = text(40);
  const std::size_t size = sealed_frame_bytes(payload.size());
  for (std::size_t bit = 0; bit < 8 * size; bit += kIsSanitized ? 7 : 1) {
    b_.sink.lost_.clear();
    start();
    send(1, payload);
    Wire wire = take(size);
    wire[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    give(wire);
    expect_refused();
    ASSERT_TRUE(b_.sink.frames_.empty()) << bit;
    stop();
  }
}

TEST_F(EncryptedLink, ARepeatedFrameEndsIt) {
  start();
  send(1, text(10));
  const Wire wire = take(sealed_frame_bytes(10));
  give(wire);
  EXPECT_TRUE(b_.sink.wait([](auto& s) { return s.frames_.size() == 1; }));
  give(wire);
  expect_refused();
  EXPECT_EQ(b_.sink.frames_.size(), 1u);
}

TEST_F(EncryptedLink, FramesInAnotherOrderEndIt) {
  start();
  send(1, text(10));
  send(2, text(10));
  const Wire wire = take(2 * sealed_frame_bytes(10));
  Wire swapped(wire.begin() + static_cast<std::ptrdiff_t>(wire.size() / 2), wire.end());
  swapped.insert(swapped.end(), wire.begin(),
                 wire.begin() + static_cast<std::ptrdiff_t>(wire.size() / 2));
  give(swapped);
  expect_refused();
  EXPECT_TRUE(b_.sink.frames_.empty());
}

TEST_F(EncryptedLink, AFrameThatIsMissingEndsIt) {
  start();
  for (std::uint64_t i = 0; i < 3; ++i) send(i, text(10));
  const std::size_t size = sealed_frame_bytes(10);
  Wire wire = take(3 * size);
  wire.erase(wire.begin() + static_cast<std::ptrdiff_t>(size),
             wire.begin() + static_cast<std::ptrdiff_t>(2 * size));
  give(wire);
  expect_refused();
  EXPECT_EQ(b_.sink.frames_.size(), 1u);
}

// The other end's own words, sent back to it.
TEST_F(EncryptedLink, AReflectionEndsIt) {
  start();
  send(1, text(10));
  const Wire wire = take(sealed_frame_bytes(10));
  ASSERT_EQ(::send(a_.far.get(), wire.data(), wire.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(wire.size()));
  EXPECT_TRUE(a_.sink.wait([](auto& s) { return s.lost_.contains(0); }));
  EXPECT_TRUE(a_.sink.frames_.empty());
}

TEST_F(EncryptedLink, AnEndThatWasNotAnnouncedIsALoss) {
  const std::size_t size = sealed_frame_bytes(50'000);
  for (const std::size_t cut :
       {std::size_t{0}, std::size_t{1}, kSealedHeaderBytes, size - 1, size}) {
    b_.sink.lost_.clear();
    start();
    send(1, text(50'000));
    const Wire wire = take(size);
    give(std::span(wire).first(cut));
    ::shutdown(b_.far.get(), SHUT_WR);
    EXPECT_TRUE(b_.sink.wait([](auto& s) { return s.lost_.contains(0); }));
    EXPECT_NE(b_.sink.lost_[0].find("without a goodbye"), std::string::npos) << b_.sink.lost_[0];
    EXPECT_EQ(b_.sink.frames_.size(), cut == size ? 1u : 0u);
    stop();
  }
}

TEST_F(EncryptedLink, AGoodbyeIsSealedToo) {
  start();
  send(1, text(10));
  reactor_->run_and_wait([&] { a_.link->close(); });
  give(take(sealed_frame_bytes(10) + kSealedHeaderBytes));
  EXPECT_TRUE(b_.sink.wait([](auto& s) { return s.departed_.size() == 1; }));
  EXPECT_EQ(b_.sink.frames_.size(), 1u);
  EXPECT_TRUE(b_.sink.lost_.empty());
}

TEST_F(EncryptedLink, APlainGoodbyeEndsIt) {
  start();
  const FrameBytes goodbye = encode({.type = FrameType::kGoodbye, .communicator = kCommunicator});
  give(std::as_bytes(std::span(goodbye)));
  give(text(kTagBytes));
  expect_refused();
  EXPECT_TRUE(b_.sink.departed_.empty());
}

}  // namespace
}  // namespace riffle::encrypted_link_test
