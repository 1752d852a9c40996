// One link, with the test itself as the peer at the other end of its sockets.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugin/transport/tcp/tcp_link.h"
#include "test/plugin/transport/transport_harness.h"

namespace riffle {

inline constexpr std::uint64_t kCommunicator = 0xc0ffee;

struct LinkRecorder : FrameSink {
  Result<std::byte*> get_receive_buffer(int, const FrameHeader& header) override {
    room.assign(header.length + 1u, std::byte{0});
    return room.data();
  }
  void arrived(int, const FrameHeader& header, std::byte* payload) override {
    const std::lock_guard lock(mutex);
    frames.push_back({reinterpret_cast<char*>(payload), header.length});
  }
  void sent(int, std::uint64_t) override { ++sent_count; }
  void departed(int) override { has_departed = true; }
  void lost(int, const Status& why) override {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(error.empty());
    error = why.message();
  }
  std::string error_now() {
    const std::lock_guard lock(mutex);
    return error;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return frames.size();
  }
  std::vector<std::byte> room;
  std::mutex mutex;
  std::vector<std::string> frames;
  std::string error;
  std::atomic<bool> has_departed{false};
  std::atomic<int> sent_count{0};
};

// Both ends of a connection, which do not block.
inline void connect_over_tcp(int* ends) {
  const Fd door = Fd::make([] { return ::socket(AF_INET, SOCK_STREAM, 0); });
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  ASSERT_EQ(::bind(door.get(), address, size), 0);
  ASSERT_EQ(::listen(door.get(), 1), 0);
  ASSERT_EQ(::getsockname(door.get(), address, &size), 0);
  ends[0] = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(ends[0], address, size), 0);
  ends[1] = ::accept(door.get(), nullptr, nullptr);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(::fcntl(ends[i], F_SETFL, O_NONBLOCK), 0);
}

class LinkTest : public ::testing::Test {
 protected:
  void start(std::size_t streams, TcpLinkOptions options = {},
             std::shared_ptr<NicTraffic::Slot> traffic = nullptr) {
    options.peer = "the test";
    std::vector<Connection> near;
    for (std::size_t i = 0; i < streams; ++i) near.push_back(one_more());
    reactor_->run_and_wait([&] {
      link_ = TcpLink::create(*reactor_, std::move(near), options,
                              {.peer = options.peer,
                               .communicator = kCommunicator,
                               .deliveries = deliveries_,
                               .traffic = std::move(traffic)},
                              &sink_);
    });
  }
  // The link's end of a new stream.
  Fd one_more() {
    int ends[2] = {-1, -1};
    if (is_over_tcp_) {
      connect_over_tcp(ends);
    } else {
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    }
    far_.push_back(Fd::make([&] { return ends[1]; }));
    return Fd::make([&] { return ends[0]; });
  }
  void add(bool is_proven) {
    reactor_->run_and_wait([&] { link_->link()->add(one_more(), is_proven); });
  }
  void send_frames(std::size_t count) {
    reactor_->run_and_wait([&] {
      for (std::size_t i = 0; i < count; ++i) {
        link_->send(numbered(i, 64 << 10), large_payload_, 0, 0);
      }
    });
  }
  bool has_anything(std::size_t stream) {
    char byte;
    return ::recv(far_[stream].get(), &byte, 1, MSG_PEEK) > 0;
  }
  ~LinkTest() override {
    reactor_->run_and_wait([&] {
      if (link_ != nullptr) link_->abort();
      link_.reset();
    });
  }
  void write(const void* data, std::size_t size, std::size_t stream = 0) {
    ASSERT_EQ(::send(far_[stream].get(), data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  void write_frame(FrameHeader header, const std::string& payload, std::size_t stream = 0) {
    if (header.communicator == 0) header.communicator = kCommunicator;
    header.length = static_cast<std::uint32_t>(payload.size());
    const FrameBytes bytes = encode(header);
    const std::string wire(bytes.begin(), bytes.end());
    write((wire + payload).data(), wire.size() + payload.size(), stream);
  }
  // Whole frames that the link sent on one stream, heartbeats left out.
  std::vector<FrameHeader> read_frames(std::size_t stream, std::size_t count) {
    std::vector<FrameHeader> frames;
    std::string& bytes = unread_[stream];
    EXPECT_TRUE(eventually([&] {
      char buffer[64 << 10];
      const ssize_t n = ::recv(far_[stream].get(), buffer, sizeof buffer, 0);
      if (n > 0) bytes.append(buffer, static_cast<std::size_t>(n));
      while (bytes.size() >= kFrameHeaderBytes) {
        FrameBytes header;
        std::copy_n(bytes.begin(), header.size(), header.begin());
        const auto decoded = decode(header);
        EXPECT_TRUE(decoded);
        if (bytes.size() < kFrameHeaderBytes + decoded->length) break;
        bytes.erase(0, kFrameHeaderBytes + decoded->length);
        if (decoded->type != FrameType::kHeartbeat) frames.push_back(*decoded);
      }
      return frames.size() >= count;
    }));
    return frames;
  }
  void expect_lost(const std::string& reason) {
    EXPECT_TRUE(eventually([&] { return !sink_.error_now().empty(); }));
    EXPECT_NE(sink_.error_now().find(reason), std::string::npos) << sink_.error_now();
    // Who is lost its owner says, once.
    EXPECT_EQ(sink_.error_now().find("the test"), std::string::npos) << sink_.error_now();
    char byte;  // our end hears the end, too
    EXPECT_TRUE(eventually([&] { return ::recv(far_[0].get(), &byte, 1, 0) == 0; }));
  }

  std::shared_ptr<Reactor> reactor_ = Reactor::acquire(settings());
  const std::vector<std::byte> large_payload_ = std::vector<std::byte>(64 << 10);
  LinkRecorder sink_;
  std::shared_ptr<Deliveries> deliveries_;
  bool is_over_tcp_ = false;  // what a test needs that is about the kernel's TCP
  std::vector<Fd> far_;
  std::map<std::size_t, std::string> unread_;  // by stream
  std::shared_ptr<LinkChannel> link_;
};

}  // namespace riffle
