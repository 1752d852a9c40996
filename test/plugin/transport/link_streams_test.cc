// One link of several streams: which of them frames take, streams that are added later and those
// that the peer has not proved yet.
#include <thread>

#include "plugin/transport/tcp/tcp_link.h"
#include "test/plugin/transport/link_harness.h"

namespace riffle::link_streams_test {
namespace {

TEST_F(LinkTest, AStreamThatIsStuckDoesNotStopTheOthers) {
  start(2);
  // Nobody reads stream 0; everything that it did not take already goes through stream 1.
  constexpr std::size_t kFrames = 100;
  send_frames(kFrames);
  const auto through = read_frames(1, 80);
  EXPECT_GE(through.size(), 80u);
  EXPECT_GE(sink_.sent_count.load(), 80);
}

// The peer reported a fault on one stream and ended: who finds out by sending hears the report.
TEST_F(LinkTest, WhatArrivedOnOtherStreamsCountsBeforeAnEndNoticedInSending) {
  start(4);
  reactor_->run_and_wait([&] {  // no event of the sockets is handled meanwhile
    write_frame({}, "the reason", 3);
    for (Fd& end : far_) ::shutdown(end.get(), SHUT_RDWR);
    link_->send({.length = 64 << 10}, large_payload_, 0, 0);
    link_->flush();
    EXPECT_FALSE(sink_.error_now().empty());
    EXPECT_EQ(sink_.count(), 1u);
  });
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
  std::weak_ptr<TcpLink> link;
  reactor_->run_and_wait([&] {
    link = link_->link()->weak_from_this();
    std::exchange(link_, nullptr)->close();
  });
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

}  // namespace
}  // namespace riffle::link_streams_test
