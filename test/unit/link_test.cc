// One link, with the test itself as the peer at the other end of the sockets: what a peer may send,
// in which portions, and what costs it the connection.
#include "plugin/transport/link.h"

#include <sys/socket.h>

#include <cstdarg>
#include <cstdio>
#include <thread>

#include "plugin/config/log.h"
#include "test/unit/transport_harness.h"

namespace riffle {
namespace {

constexpr std::uint64_t kCommunicator = 0xc0ffee;

struct Recorder : LinkSink {
  Result<std::byte*> place(const FrameHeader& header) override {
    room.assign(header.length + 1u, std::byte{0});
    return room.data();
  }
  void arrived(const FrameHeader& header, std::byte* payload) override {
    const std::lock_guard lock(mutex);
    frames.push_back({reinterpret_cast<char*>(payload), header.length});
  }
  void sent(std::uint64_t) override { ++sent_count; }
  void departed() override { has_departed = true; }
  void lost(const Status& why) override {
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

class LinkTest : public testing::Test {
 protected:
  void start(std::size_t streams, LinkOptions options = {}) {
    options.peer = "the test";
    options.communicator = kCommunicator;
    std::vector<Fd> near;
    for (std::size_t i = 0; i < streams; ++i) near.push_back(one_more());
    reactor_->run_and_wait(
        [&] { link_ = Link::create(*reactor_, std::move(near), options, &sink_); });
  }
  // The link's end of a new stream.
  Fd one_more() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    far_.push_back(Fd::make([&] { return ends[1]; }));
    return Fd::make([&] { return ends[0]; });
  }
  void add(bool is_proven) {
    reactor_->run_and_wait([&] { link_->add(one_more(), is_proven); });
  }
  void send_frames(std::size_t count) {
    reactor_->run_and_wait([&] {
      for (std::size_t i = 0; i < count; ++i) {
        link_->send({.seq = i, .length = 64 << 10}, large_payload_, 0, 0);
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
    header.communicator = kCommunicator;
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

  std::shared_ptr<Reactor> reactor_ = Reactor::acquire();
  const std::vector<std::byte> large_payload_ = std::vector<std::byte>(64 << 10);
  Recorder sink_;
  std::vector<Fd> far_;
  std::map<std::size_t, std::string> unread_;  // by stream
  std::shared_ptr<Link> link_;
};

TEST_F(LinkTest, FramesArriveWhateverPortionsTheyComeIn) {
  start(1);
  std::string wire;
  const std::vector<std::string> payloads = {
      "", "a", std::string(70, 'b'), std::string(20'000, 'c'), "", "tail"};
  for (const auto& p : payloads) {
    const FrameBytes header =
        encode({.communicator = kCommunicator, .length = static_cast<std::uint32_t>(p.size())});
    wire.append(reinterpret_cast<const char*>(header.data()), header.size());
    wire += p;
  }
  for (const std::size_t portion : {1, 63, 64, 65, 1000, 30'000}) {
    sink_.frames.clear();
    for (std::size_t at = 0; at < wire.size(); at += portion) {
      write(&wire[at], std::min(portion, wire.size() - at));
      if (portion > 1 || at < 200) reactor_->run_and_wait([] {});  // lets it read
      if (portion == 1 && at % 64 == 0) reactor_->run_and_wait([] {});
    }
    EXPECT_TRUE(eventually([&] { return sink_.count() == payloads.size(); }));
    EXPECT_EQ(sink_.frames, payloads);
  }
}

TEST_F(LinkTest, AFrameOfAnotherCommunicatorCostsTheConnection) {
  start(2);
  const FrameBytes bytes = encode({.communicator = 1, .length = 0});
  write(bytes.data(), bytes.size());
  expect_lost("another communicator");
}

TEST_F(LinkTest, ADamagedHeaderCostsTheConnection) {
  start(2);
  FrameBytes bytes = encode({.communicator = kCommunicator, .length = 5});
  bytes[20] ^= 1;
  write(bytes.data(), bytes.size());
  expect_lost("CRC32C");
}

TEST_F(LinkTest, AnOversizedFrameCostsTheConnection) {
  start(1);
  const FrameBytes bytes = encode({.communicator = kCommunicator, .length = kMaxFramePayload + 1});
  write(bytes.data(), bytes.size());
  expect_lost("at most 4194304");
}

TEST_F(LinkTest, ATruncatedFrameIsALostPeer) {
  start(1);
  write_frame({}, "whole");
  const FrameBytes bytes = encode({.communicator = kCommunicator, .length = 100});
  write(bytes.data(), bytes.size());
  write("half", 4);
  ::shutdown(far_[0].get(), SHUT_WR);
  expect_lost("without a goodbye");
  EXPECT_EQ(sink_.count(), 1u);
}

TEST_F(LinkTest, ADamagedPayloadIsNoticedIfAskedFor) {
  start(1, {.payload_crc = true});
  write_frame({.payload_crc = crc32c("good", 4)}, "good");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  write_frame({.payload_crc = crc32c("good", 4)}, "bad!");
  expect_lost("payload damaged");
}

TEST_F(LinkTest, FramesAfterAGoodbyeAreABreachOfProtocol) {
  start(1);
  write_frame({.type = FrameType::kGoodbye}, "");
  write_frame({}, "surprise");
  expect_lost("after its goodbye");
}

TEST_F(LinkTest, DepartedOnceEveryStreamSaidGoodbyeAndResetsAreNoErrorThen) {
  start(3);
  for (std::size_t i : {0, 2}) write_frame({.type = FrameType::kGoodbye}, "", i);
  write_frame({}, "still here", 1);
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  EXPECT_FALSE(sink_.has_departed);
  write_frame({.type = FrameType::kGoodbye}, "", 1);
  EXPECT_TRUE(eventually([&] { return sink_.has_departed.load(); }));
  far_.clear();  // from now on sending breaks
  const std::vector<std::byte> payload(1000);
  reactor_->run_and_wait([&] {
    for (int i = 0; i < 10; ++i) link_->send({.length = 1000}, payload, 0, 0);
  });
  EXPECT_TRUE(eventually([&] { return sink_.sent_count.load() == 10; }));
  EXPECT_EQ(sink_.error_now(), "");
}

TEST_F(LinkTest, CloseSendsWhatIsQueuedThenGoodbyeThenTheEnd) {
  start(2);
  std::vector<std::byte> payload(300, std::byte{7});
  reactor_->run_and_wait([&] {
    for (std::uint64_t i = 0; i < 40; ++i) link_->send({.seq = i, .length = 300}, payload, 0, 0);
    link_->close();
    link_.reset();
    payload.assign(300, std::byte{0});
  });
  std::size_t data_frames = 0;
  for (std::size_t stream : {0, 1}) {
    std::vector<FrameHeader> all;
    EXPECT_TRUE(eventually([&] {
      const auto more = read_frames(stream, 1);
      all.insert(all.end(), more.begin(), more.end());
      return all.back().type == FrameType::kGoodbye;
    }));
    data_frames += all.size() - 1;
    char byte;
    EXPECT_TRUE(eventually([&] { return ::recv(far_[stream].get(), &byte, 1, 0) == 0; }));
  }
  EXPECT_EQ(data_frames, 40u);
}

// Warnings while it lives; the logger is the process's.
class Warnings {
 public:
  Warnings() { set_logger(keep); }
  ~Warnings() { set_logger(nullptr); }
  static std::string all() {
    const std::lock_guard lock(mutex());
    return text();
  }

 private:
  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
  static std::string& text() {
    static std::string instance;
    return instance;
  }
  static void keep(int, unsigned long, const char*, int, const char*, ...);
};
void Warnings::keep(int, unsigned long, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(mutex());
  text() += std::string(line) + "\n";
}

TEST_F(LinkTest, CloseWaitsForASlowPeerAsLongAsItTakesSomething) {
  const Warnings warnings;
  start(1, {.drain_ns = 400'000'000});
  constexpr std::size_t kFrames = 60;
  reactor_->run_and_wait([&] {
    for (std::size_t i = 0; i < kFrames; ++i) {
      link_->send({.seq = i, .length = 64 << 10}, large_payload_, 0, 0);
    }
    std::exchange(link_, nullptr)->close();
  });
  std::size_t got = 0;
  while (got < kFrames && !HasFailure()) {  // three times the limit in all
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    got += read_frames(0, 1).size();
  }
  EXPECT_EQ(Warnings::all(), "");
}

TEST_F(LinkTest, CloseGivesUpAPeerThatTakesNothingAndSaysWhatWasLost) {
  const Warnings warnings;
  start(1, {.drain_ns = 100'000'000});
  reactor_->run_and_wait([&] {
    for (std::size_t i = 0; i < 30; ++i) {
      link_->send({.seq = i, .length = 64 << 10}, large_payload_, 0, 0);
    }
    std::exchange(link_, nullptr)->close();
  });
  EXPECT_TRUE(
      eventually([] { return Warnings::all().find("not delivered") != std::string::npos; }));
  EXPECT_NE(Warnings::all().find("connection to the test"), std::string::npos) << Warnings::all();
}

TEST_F(LinkTest, AStreamThatIsStuckDoesNotStopTheOthers) {
  start(2);
  // Nobody reads stream 0; everything that it did not take already goes through stream 1.
  constexpr std::size_t kFrames = 100;
  send_frames(kFrames);
  const auto through = read_frames(1, 80);
  EXPECT_GE(through.size(), 80u);
  EXPECT_GE(sink_.sent_count.load(), 80);
}

TEST_F(LinkTest, FramesKeepToTheStreamsInUse) {
  start(3);
  reactor_->run_and_wait([&] { link_->use_streams(1); });
  send_frames(20);
  EXPECT_EQ(read_frames(0, 20).size(), 20u);
  EXPECT_FALSE(has_anything(1) || has_anything(2));
  reactor_->run_and_wait([&] { link_->use_streams(16); });
  send_frames(60);  // nobody reads stream 0
  EXPECT_GE(read_frames(1, 1).size() + read_frames(2, 1).size(), 2u);
}

// Whoever connected a stream begins with a heartbeat, so that the peer knows.
TEST_F(LinkTest, AStreamThatIsAddedProvesItselfAndCarriesFrames) {
  start(1);
  add(true);
  EXPECT_TRUE(eventually([&] { return has_anything(1); }));
  FrameBytes heartbeat;
  ASSERT_EQ(::recv(far_[1].get(), heartbeat.data(), heartbeat.size(), 0),
            static_cast<ssize_t>(heartbeat.size()));
  EXPECT_EQ(decode(heartbeat)->type, FrameType::kHeartbeat);
  send_frames(60);  // nobody reads stream 0
  EXPECT_GE(read_frames(1, 10).size(), 10u);
  write_frame({}, "from there", 1);
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  for (std::size_t i : {0, 1}) write_frame({.type = FrameType::kGoodbye}, "", i);
  EXPECT_TRUE(eventually([&] { return sink_.has_departed.load(); }));
}

TEST_F(LinkTest, NothingIsSentOnAStreamThatThePeerHasNotProved) {
  start(1, {.peer_timeout_ns = 400'000'000});
  add(false);
  send_frames(60);
  EXPECT_GE(read_frames(0, 20).size(), 20u);
  for (int i = 0; i < 5; ++i) {  // longer than the timeout, which does not count for it
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    write_frame({.type = FrameType::kHeartbeat}, "");
  }
  EXPECT_FALSE(has_anything(1));
  EXPECT_EQ(sink_.error_now(), "");
  write_frame({.type = FrameType::kHeartbeat}, "", 1);
  EXPECT_GE(read_frames(1, 1).size(), 1u);
  far_[1].reset();
  EXPECT_TRUE(eventually([&] { return !sink_.error_now().empty(); })) << "now it counts";
}

TEST_F(LinkTest, AStreamThatVanishesBeforeItWasUsedIsNoLoss) {
  start(1);
  add(false);
  add(false);
  far_[1].reset();
  write_frame({}, "still here");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  // The peer may have a frame on the other one: it has departed once that one ended, too.
  write_frame({.type = FrameType::kGoodbye}, "");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(sink_.has_departed);
  far_[2].reset();
  EXPECT_TRUE(eventually([&] { return sink_.has_departed.load(); }));
  EXPECT_EQ(sink_.error_now(), "");
}

TEST_F(LinkTest, CloseIsCompleteWhenAnUnprovenStreamEnds) {
  start(1);
  add(false);
  add(false);
  reactor_->run_and_wait([&] { link_->close(); });
  const std::weak_ptr<Link> link = std::exchange(link_, nullptr);
  EXPECT_EQ(read_frames(0, 1)[0].type, FrameType::kGoodbye);
  write_frame({.type = FrameType::kGoodbye}, "");
  far_[0].reset();
  write_frame({.type = FrameType::kHeartbeat}, "", 1);  // proved late: it gets its goodbye
  EXPECT_EQ(read_frames(1, 1)[0].type, FrameType::kGoodbye);
  far_[1].reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(link.expired());
  far_[2].reset();
  EXPECT_TRUE(eventually([&] { return link.expired(); }, 2000));
}

TEST_F(LinkTest, SilenceIsALostPeerAndHeartbeatsAreSent) {
  start(1, {.peer_timeout_ns = 200'000'000});
  expect_lost("no sign of life for 0.2 s");
}

// Both sides were suspended: nothing came meanwhile, and nothing can have come.
TEST_F(LinkTest, OwnAbsenceIsNoSilenceOfThePeer) {
  start(1, {.peer_timeout_ns = 400'000'000});
  for (int i = 0; i < 2; ++i) {
    reactor_->run_and_wait([] { std::this_thread::sleep_for(std::chrono::milliseconds(450)); });
    reactor_->run_and_wait([] {});  // the turn that was late is over
    EXPECT_EQ(sink_.error_now(), "");
  }
  expect_lost("no sign of life for 0.4 s");
}

TEST_F(LinkTest, AnExceptionOfTheOwnerCostsOnlyThisLink) {
  start(1);
  reactor_->run_and_wait([&] {
    EXPECT_THROW(link_->send({.length = 1}, {}, 0, 0), InvariantBroken);  // a lying header
  });
}

}  // namespace
}  // namespace riffle
