// Channels of one link, with the test as the peer: whose turn it is, what is thrown away, how one
// of them ends and the others go on.
#include "test/plugin/transport/tcp/link_channels_harness.h"

namespace riffle::link_channels_test {
namespace {

TEST_F(LinkChannels, EachHearsItsOwnFrames) {
  start_two(2);
  write_of(kOther, "for the other", 1);
  write_of(kCommunicator, "for the first", 0);
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1 && other_sink_.count() == 1; }));
  EXPECT_EQ(sink_.frames, std::vector<std::string>{"for the first"});
  EXPECT_EQ(other_sink_.frames, std::vector<std::string>{"for the other"});
  on_reactor([&] {
    EXPECT_EQ(other_->counters().bytes_received, kFrameHeaderBytes + 13);
    EXPECT_EQ(other_->counters().frames_received, 1u);
    EXPECT_EQ(link_->counters().bytes_received, kFrameHeaderBytes + 13);
  });
}

TEST_F(LinkChannels, TwoThatAreBusySendInTurns) {
  start_two(1);
  on_reactor([&] {
    for (std::uint64_t i = 0; i < 20; ++i) link_->send(numbered(i, 64 << 10), large_payload_, 0, 0);
    // Later, and of less priority among its own.
    for (std::uint64_t i = 0; i < 20; ++i) {
      other_->send(numbered(i, 64 << 10), large_payload_, 0, 5);
    }
  });
  std::vector<std::uint64_t> order;
  while (order.size() < 40 && !HasFailure()) {
    for (const FrameHeader& h : read_frames(0, 1)) order.push_back(h.communicator);
  }
  for (std::size_t i = 1; i < order.size(); ++i) EXPECT_NE(order[i], order[i - 1]) << i;
}

// Half of a payload is in, and nothing of what follows may touch the room of the one that left.
TEST_F(LinkChannels, ARestOfAPayloadGoesNowhereOnceItsOwnerHasLeft) {
  for (const bool closes : {false, true}) {
    start_two(1);
    const std::string payload(100'000, 'x');
    const FrameBytes head =
        encode({.communicator = kOther, .length = static_cast<std::uint32_t>(payload.size())});
    write(head.data(), head.size());
    write(payload.data(), 40'000);
    EXPECT_TRUE(eventually([&] {
      std::byte at{};
      on_reactor([&] {
        if (other_sink_.room.size() > 39'999) at = other_sink_.room[39'999];
      });
      return at == std::byte{'x'};
    }));
    on_reactor([&] {
      if (closes) other_->close();
      if (!closes) other_->abort();
      std::ranges::fill(other_sink_.room, std::byte{0});
    });
    write(payload.data() + 40'000, payload.size() - 40'000);
    write_of(kCommunicator, "still in step");
    EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
    EXPECT_EQ(sink_.frames, std::vector<std::string>{"still in step"});
    on_reactor([&] {
      EXPECT_TRUE(
          std::ranges::all_of(other_sink_.room, [](std::byte b) { return b == std::byte{0}; }));
      other_.reset();
      std::exchange(link_, nullptr)->abort();
    });
    EXPECT_EQ(other_sink_.count(), 0u);
    sink_.frames.clear();
    far_.clear();
    unread_.clear();
  }
}

TEST_F(LinkChannels, OneThatClosesSendsWhatIsQueuedAndSaysHowMuch) {
  start_two(1);
  std::vector<std::byte> payload(300, std::byte{7});
  on_reactor([&] {
    for (std::uint64_t i = 0; i < 5; ++i) other_->send(numbered(i, 300), payload, 0, 0);
    std::exchange(other_, nullptr)->close();
    payload.assign(300, std::byte{0});
    link_->send(numbered(9), {}, 0, 0);
  });
  std::vector<FrameHeader> frames;
  while (frames.size() < 7 && !HasFailure()) {
    for (const FrameHeader& h : read_frames(0, 1)) frames.push_back(h);
  }
  std::size_t data = 0;
  for (const FrameHeader& h : frames) {
    if (h.type == FrameType::kData) ++data;
    if (h.type != FrameType::kLeave) continue;
    EXPECT_EQ(h.communicator, kOther);
    EXPECT_EQ(frame_of<LeaveFrame>(h).frames, 5u);
    EXPECT_FALSE(frame_of<LeaveFrame>(h).is_loss);
  }
  EXPECT_EQ(data, 6u);
  EXPECT_EQ(other_sink_.sent_count, 0);
  // What still comes for it is no error, until the peer has left it, too.
  write_of(kOther, "late");
  tell(kOther, LeaveFrame{.frames = 1});
  write_of(kCommunicator, "alive");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  EXPECT_EQ(sink_.error_now(), "");
  write_of(kOther, "after its end");
  expect_lost("another communicator");
}

TEST_F(LinkChannels, APeersLeaveCountsOnceAllItsFramesAreIn) {
  start_two(2);
  tell(kOther, LeaveFrame{.frames = 2}, 0);
  write_of(kOther, "one", 1);
  EXPECT_TRUE(eventually([&] { return other_sink_.count() == 1; }));
  on_reactor([&] { EXPECT_FALSE(other_sink_.has_departed); });
  write_of(kOther, "two", 1);
  EXPECT_TRUE(eventually([&] { return other_sink_.has_departed.load(); }));
  EXPECT_EQ(other_sink_.count(), 2u);
  EXPECT_FALSE(sink_.has_departed);
  // The peer throws it away, and it counts as sent.
  on_reactor([&] { other_->send(numbered(1), {}, 0, 0); });
  EXPECT_TRUE(eventually([&] { return other_sink_.sent_count == 1; }));
}

TEST_F(LinkChannels, OneThatAbortsIsLostToThePeerAlone) {
  start_two(1);
  on_reactor([&] {
    for (std::uint64_t i = 0; i < 60; ++i)
      other_->send(numbered(i, 64 << 10), large_payload_, 0, 0);
    std::exchange(other_, nullptr)->abort();
  });
  const FrameHeader leave = next_own();
  EXPECT_EQ(leave.type, FrameType::kLeave);
  EXPECT_TRUE(frame_of<LeaveFrame>(leave).is_loss);
  EXPECT_EQ(frame_of<LeaveFrame>(leave).frames, 0u) << "nothing had left yet";
  on_reactor([&] { link_->send(numbered(9), {}, 0, 0); });
  EXPECT_EQ(read_frames(0, 1).at(0).communicator, kCommunicator);
}

TEST_F(LinkChannels, APeerThatAbortsOneIsLostToItsSinkAlone) {
  start_two(2);
  tell(kOther, LeaveFrame{.is_loss = true, .frames = 1});
  write_of(kOther, "why it left", 1);
  EXPECT_TRUE(eventually([&] { return !other_sink_.error_now().empty(); }));
  EXPECT_NE(other_sink_.error_now().find("without a goodbye"), std::string::npos);
  EXPECT_EQ(other_sink_.count(), 1u) << "what it said before comes first";
  EXPECT_TRUE(eventually([&] { return has_anything(0) || has_anything(1); }));
  EXPECT_EQ(next_own(has_anything(0) ? 0 : 1).type, FrameType::kLeave) << "of this side";
  write_of(kCommunicator, "alive");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  EXPECT_EQ(sink_.error_now(), "");
}

TEST_F(LinkChannels, ABrokenLinkIsALossToAllOfThem) {
  start_two(2);
  far_[1].reset();
  EXPECT_TRUE(
      eventually([&] { return !sink_.error_now().empty() && !other_sink_.error_now().empty(); }));
}

TEST_F(LinkChannels, WhatOneRefusesCostsTheOthersNothing) {
  struct Refusing : LinkRecorder {
    Result<std::byte*> get_receive_buffer(int, const FrameHeader&) override {
      return remote_error("refused by the test");
    }
  } refusing;
  start_two(1);
  on_reactor([&] { other_->set_sink(&refusing); });
  write_of(kOther, "anything");
  write_of(kCommunicator, "alive");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  EXPECT_EQ(refusing.error_now(), "refused by the test");
  EXPECT_TRUE(frame_of<LeaveFrame>(next_own()).is_loss);
  on_reactor([&] { other_.reset(); });
}

TEST_F(LinkChannels, AnExceptionOfOneOwnerIsNoneOfTheOthers) {
  struct Throwing : LinkRecorder {
    void arrived(int, const FrameHeader&, std::byte*) override { throw std::bad_alloc(); }
    void failed(const Status&) override { has_failed = true; }
    std::atomic<bool> has_failed{false};
  } throwing;
  start_two(1);
  on_reactor([&] { other_->set_sink(&throwing); });
  for (int i = 0; i < 3; ++i) write_of(kOther, "anything");
  write_of(kCommunicator, "alive");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  EXPECT_TRUE(throwing.has_failed);
  EXPECT_EQ(sink_.error_now(), "");
  // What its owner has to say still leaves.
  on_reactor([&] { other_->send(numbered(1), {}, 0, 0); });
  EXPECT_EQ(read_frames(0, 1).at(0).communicator, kOther);
  on_reactor([&] { other_.reset(); });
}

TEST_F(LinkChannels, TheLastOneTakesTheLinkWithIt) {
  start_two(2);
  on_reactor([&] { std::exchange(link_, nullptr)->close(); });
  EXPECT_EQ(next_own(0).type, FrameType::kLeave);
  std::weak_ptr<TcpLink> link;
  on_reactor([&] {
    link = other_->link()->weak_from_this();
    std::exchange(other_, nullptr)->close();
  });
  for (const std::size_t stream : {0, 1}) {
    EXPECT_EQ(next_own(stream).type, FrameType::kGoodbye);
    far_[stream].reset();
  }
  EXPECT_TRUE(eventually([&] { return link.expired(); }));
}

// A stream that was added for one of them and never used is no goodbye of the others.
TEST_F(LinkChannels, AStreamThatThePeerNeverTookUpLeavesTheLinkAsItWas) {
  start_two(1);
  add(false);
  far_[1].reset();
  write_of(kCommunicator, "alive");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  add(true);
  EXPECT_TRUE(eventually([&] { return has_anything(2); })) << "it proves itself";
  for (std::size_t i : {0u, 2u}) write_frame({.type = FrameType::kGoodbye}, "", i);
  EXPECT_TRUE(eventually([&] { return sink_.has_departed && other_sink_.has_departed; }));
}

// The last one is aborted while another still sends what it closed with.
TEST_F(LinkChannels, AnAbortLeavesWhatOthersCloseWith) {
  start_two(1);
  on_reactor([&] {
    for (std::uint64_t i = 0; i < 60; ++i) link_->send(numbered(i, 64 << 10), large_payload_, 0, 0);
    std::exchange(link_, nullptr)->close();
    std::exchange(other_, nullptr)->abort();
  });
  std::size_t data = 0;
  for (bool is_over = false; !is_over && !HasFailure();) {
    for (const FrameHeader& h : read_frames(0, 1)) {
      if (h.type == FrameType::kData) ++data;
      if (h.type == FrameType::kGoodbye) is_over = true;
    }
  }
  EXPECT_EQ(data, 60u);
}

TEST_F(LinkChannels, AFrameAfterItsLeaveEndsTheLink) {
  start_two(1);
  tell(kOther, LeaveFrame{});
  EXPECT_TRUE(eventually([&] { return other_sink_.has_departed.load(); }));
  write_of(kOther, "late");
  expect_lost("after it had left");
  EXPECT_EQ(other_sink_.count(), 0u);
}

// It has begun one, on another stream, that it does not count.
TEST_F(LinkChannels, NothingOfAFrameComesThatItsLeaveDoesNotCount) {
  start_two(2);
  const FrameBytes head = encode({.communicator = kOther, .length = 8});
  write(head.data(), head.size(), 1);
  write("half", 4, 1);
  EXPECT_TRUE(eventually([&] {
    bool has_begun = false;
    on_reactor([&] { has_begun = !other_sink_.room.empty(); });
    return has_begun;
  }));
  tell(kOther, LeaveFrame{}, 0);
  EXPECT_TRUE(eventually([&] { return other_sink_.has_departed.load(); }));
  write("rest", 4, 1);
  write_of(kCommunicator, "goes on", 1);
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  EXPECT_EQ(other_sink_.count(), 0u);
  EXPECT_EQ(sink_.error_now(), "");
}

}  // namespace
}  // namespace riffle::link_channels_test
