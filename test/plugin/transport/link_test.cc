// One link: what a peer may send, in which portions, and what costs it the connection; how a link
// ends.
#include "plugin/transport/tcp/tcp_link.h"

#include <cstdarg>
#include <cstdio>
#include <thread>

#include "plugin/config/log.h"
#include "test/plugin/transport/link_harness.h"

namespace riffle::link_test {
namespace {

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

// As what an owner does not want has: a second one comes while the first is half here.
TEST_F(LinkTest, PayloadsThatShareAPlaceAreNotTakenForDamaged) {
  start(2, {.payload_crc = true});
  const std::string one(1000, 'a'), other(1000, 'b');
  const FrameBytes header = encode({.communicator = kCommunicator,
                                    .length = 1000,
                                    .payload_crc = crc32c(one.data(), one.size())});
  write(header.data(), header.size(), 0);
  write(one.data(), 500, 0);
  reactor_->run_and_wait([] {});
  reactor_->run_and_wait([] {});
  write_frame({.payload_crc = crc32c(other.data(), other.size())}, other, 1);
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  write(one.data() + 500, 500, 0);
  EXPECT_TRUE(eventually([&] { return sink_.count() == 2; }));
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
    for (std::uint64_t i = 0; i < 40; ++i) link_->send(numbered(i, 300), payload, 0, 0);
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
// The machine may have been read meanwhile, which is told as well, but is no warning.
void Warnings::keep(int level, unsigned long, const char*, int, const char* format, ...) {
  constexpr int kNcclWarn = 2;
  if (level != kNcclWarn) return;
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
      link_->send(numbered(i, 64 << 10), large_payload_, 0, 0);
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
      link_->send(numbered(i, 64 << 10), large_payload_, 0, 0);
    }
    std::exchange(link_, nullptr)->close();
  });
  EXPECT_TRUE(
      eventually([] { return Warnings::all().find("not delivered") != std::string::npos; }));
  EXPECT_NE(Warnings::all().find("connection to the test"), std::string::npos) << Warnings::all();
}

TEST_F(LinkTest, SilenceIsALostPeerAndHeartbeatsAreSent) {
  start(1, {.peer_timeout_ns = 200'000'000});
  expect_lost("no sign of life for 0.2 s");
}

// The kernel does not report it, as the link has asked to be woken for the whole rest.
TEST_F(LinkTest, APartOfAPayloadIsASignOfLifeOfWhenItCame) {
  is_over_tcp_ = true;
  start(1, {.peer_timeout_ns = 2'000'000'000});
  const FrameBytes header = encode({.communicator = kCommunicator, .length = 100'000});
  const std::string part(20'000, 'a');
  write(header.data(), header.size());
  write(part.data(), part.size());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  write(part.data(), 1000);
  const auto start = std::chrono::steady_clock::now();
  expect_lost("no sign of life for 2 s");
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, std::chrono::milliseconds(1900));
  EXPECT_LE(took, std::chrono::milliseconds(3900)) << "counted from when it was found";
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
}  // namespace riffle::link_test
