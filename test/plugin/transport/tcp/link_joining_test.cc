// Who joins a link that is up, with the test as the peer: asks that wait, answers, proofs.
#include "plugin/transport/tcp/shared_links.h"
#include "test/plugin/transport/tcp/link_channels_harness.h"

namespace riffle::link_joining_test {
namespace {

class Joining : public LinkChannels {
 protected:
  void start_shared() {
    start(1);
    on_reactor([&] {
      shared_ = SharedLinks::of(*reactor_);
      link_->link()->share(shared_, {});
    });
    write_frame({.type = FrameType::kHeartbeat}, "");
  }
  ~Joining() override {
    on_reactor([&] {
      if (link_ != nullptr) link_->abort();
      link_.reset();
      shared_.reset();
    });
  }
  std::shared_ptr<SharedLinks> shared_;
};

TEST_F(Joining, ALinkThatIsNotSharedRefuses) {
  start(1);
  tell(kOther, JoinFrame{});
  const FrameHeader answer = next_own();
  EXPECT_EQ(answer.type, FrameType::kJoin);
  EXPECT_EQ(answer.communicator, kOther);
  EXPECT_EQ(frame_of<JoinFrame>(answer).step, JoinFrame::kRefuse);
  EXPECT_EQ(sink_.error_now(), "");
}

// Up here, which the peer may not know yet: worth waiting for.
TEST_F(Joining, ALinkIsComingUntilThePeerHasIt) {
  constexpr std::uint64_t kProcess = 7;
  const auto is_coming = [&](std::uint64_t process) {
    bool it_is = false;
    on_reactor([&] { it_is = shared_->is_coming(process); });
    return it_is;
  };
  start(1);
  on_reactor([&] {
    shared_ = SharedLinks::of(*reactor_);
    link_->link()->share(shared_, {.process = kProcess});
  });
  EXPECT_TRUE(is_coming(kProcess));
  EXPECT_FALSE(is_coming(kProcess + 1));
  write_frame({.type = FrameType::kHeartbeat}, "");
  EXPECT_TRUE(eventually([&] { return !is_coming(kProcess); }));
}

TEST_F(Joining, SoManyWaitAndNoMore) {
  start_shared();
  for (std::uint64_t i = 0; i < SharedLinks::kMostWaiting; ++i) tell(1000 + i, JoinFrame{});
  tell(5000, JoinFrame{});
  EXPECT_EQ(next_own().communicator, 5000u);
  tell(1003, LeaveFrame{.is_loss = true});  // one is withdrawn, which is answered
  EXPECT_EQ(next_own().communicator, 1003u);
  tell(5001, JoinFrame{});  // takes its place
  tell(5002, JoinFrame{});
  EXPECT_EQ(next_own().communicator, 5002u);
}

TEST_F(Joining, AnAskOfOneThatIsThereIsRefused) {
  start_shared();
  tell(kCommunicator, JoinFrame{});
  EXPECT_EQ(frame_of<JoinFrame>(next_own()).step, JoinFrame::kRefuse);
  write_of(kCommunicator, "alive");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
}

// This side has asked, and the peer may not answer as it likes.
TEST_F(Joining, AWelcomeThatProvesNothingIsNone) {
  start_shared();
  std::atomic<int> joined{0}, refused{0};
  const auto ask = [&] {
    other_ = link_->link()->attach({.peer = "the test",
                                    .communicator = kOther,
                                    .on_joined = [&](const Status& s) { ++(s ? joined : refused); },
                                    .check_welcome =
                                        [](const JoinFrame& f) {
                                          return f.proof[0] == 1 ? Status::ok()
                                                                 : remote_error("wrong proof");
                                        }},
                                   &other_sink_);
  };
  on_reactor(ask);
  tell(kOther, JoinFrame{.step = JoinFrame::kWelcome});
  EXPECT_TRUE(eventually([&] { return refused == 1; }));
  EXPECT_EQ(next_own().type, FrameType::kLeave);
  tell(kOther, LeaveFrame{});
  on_reactor([&] { other_.reset(); });
  EXPECT_TRUE(eventually([&] {
    bool is_there = true;
    on_reactor([&] { is_there = link_->link()->has(kOther); });
    return !is_there;
  }));
  on_reactor(ask);
  tell(kOther, JoinFrame{.step = JoinFrame::kWelcome, .proof = {1}});
  EXPECT_TRUE(eventually([&] { return joined == 1; }));
  EXPECT_EQ(frame_of<JoinFrame>(next_own()).step, JoinFrame::kOpen);
  write_of(kOther, "open");
  EXPECT_TRUE(eventually([&] { return other_sink_.count() == 1; }));
}

// This side has answered, and the peer has given up meanwhile: there was no channel.
TEST_F(Joining, AnAskThatIsWithdrawnAfterItsAnswerIsNoLoss) {
  start_shared();
  std::atomic<int> joined{0}, ended{0};
  on_reactor([&] {
    other_ = link_->link()->attach({.peer = "the test",
                                    .communicator = kOther,
                                    .on_joined = [&](const Status& s) { ++(s ? joined : ended); }},
                                   &other_sink_);
  });
  tell(kOther, LeaveFrame{.is_loss = true, .never_open = true});
  EXPECT_TRUE(eventually([&] { return ended == 1; }));
  EXPECT_EQ(joined, 0);
  EXPECT_EQ(other_sink_.error_now(), "");
  EXPECT_TRUE(frame_of<LeaveFrame>(next_own()).never_open) << "so that both ends forget it";
}

// A frame of the peer's may come before it says that it has the answer.
TEST_F(Joining, AnyFrameOpensWhatThisSideHasAnswered) {
  start_shared();
  std::atomic<int> joined{0};
  on_reactor([&] {
    other_ = link_->link()->attach(
        {.peer = "the test", .communicator = kOther, .on_joined = [&](const Status&) { ++joined; }},
        &other_sink_);
  });
  write_of(kOther, "early");
  EXPECT_TRUE(eventually([&] { return other_sink_.count() == 1; }));
  EXPECT_EQ(joined, 1);
  tell(kOther, JoinFrame{.step = JoinFrame::kOpen});
  tell(kOther, LeaveFrame{.frames = 1});
  EXPECT_TRUE(eventually([&] { return other_sink_.has_departed.load(); }));
  EXPECT_EQ(joined, 1);
  EXPECT_EQ(other_sink_.count(), 1u);
}

TEST_F(Joining, APeerThatAsksAndDoesNotReadIsLost) {
  start_shared();
  std::string flood;
  for (std::uint64_t i = 0; i < 200; ++i) {
    FrameHeader header = header_of(JoinFrame{});
    header.communicator = kCommunicator;
    const FrameBytes bytes = encode(header);
    flood.append(bytes.begin(), bytes.end());
  }
  std::size_t at = 0;  // whole frames
  EXPECT_TRUE(eventually([&] {
    const ssize_t n =
        ::send(far_[0].get(), &flood[at], flood.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) at = (at + static_cast<std::size_t>(n)) % flood.size();
    return !sink_.error_now().empty();
  }));
  EXPECT_NE(sink_.error_now().find("does not read the answers"), std::string::npos)
      << sink_.error_now();
}

// The peer reads nothing for a while, and this side's communicators end meanwhile: what they have
// to say waits, which is no fault of the peer's.
TEST_F(Joining, WhatThisSideHasToSayIsNoAnswerThatThePeerLeavesUnread) {
  constexpr std::uint64_t kCommunicators = 400;
  start_shared();
  send_frames(64);  // more than the socket takes
  on_reactor([&] {
    for (std::uint64_t i = 0; i < kCommunicators; ++i) {
      link_->link()->attach({.peer = "the test", .communicator = 1000 + i}, &other_sink_)->close();
    }
  });
  tell(kCommunicator, JoinFrame{});  // is refused
  write_of(kCommunicator, "alive");
  EXPECT_TRUE(eventually([&] { return sink_.count() == 1; }));
  EXPECT_EQ(sink_.error_now(), "");
  std::vector<FrameHeader> own;
  while ((own.empty() || own.back().type == FrameType::kLeave) && !HasFailure()) {
    for (const FrameHeader& header : read_frames(0, 1)) {
      if (header.type != FrameType::kData) own.push_back(header);
    }
  }
  ASSERT_EQ(own.size(), kCommunicators + 1);
  EXPECT_EQ(frame_of<JoinFrame>(own.back()).step, JoinFrame::kRefuse);
}

TEST_F(Joining, FramesBeforeAWelcomeCostTheLink) {
  start_shared();
  on_reactor([&] {
    other_ = link_->link()->attach({.peer = "the test",
                                    .communicator = kOther,
                                    .on_joined = [](const Status&) {},
                                    .check_welcome = [](const JoinFrame&) { return Status::ok(); }},
                                   &other_sink_);
  });
  write_of(kOther, "surprise");
  expect_lost("has not joined");
  EXPECT_EQ(other_sink_.count(), 0u);
}

TEST(JoinProofs, HoldForOneLinkOneCommunicatorAndOnePairAlone) {
  const Credentials own(Secret{1}), foreign(Secret{2});
  const LinkMark link = {3}, other_link = {4};
  JoinFrame ask = {.step = JoinFrame::kAsk, .from = 2, .to = 1};
  ask.proof = proof_of(ask, kCommunicator, link, own);
  EXPECT_TRUE(check_proof(ask, kCommunicator, link, own));
  EXPECT_FALSE(check_proof(ask, kCommunicator, link, foreign));
  EXPECT_FALSE(check_proof(ask, kCommunicator, other_link, own));
  EXPECT_FALSE(check_proof(ask, kOther, link, own));
  for (JoinFrame changed :
       {JoinFrame{JoinFrame::kWelcome, 2, 1, ask.proof},
        JoinFrame{JoinFrame::kAsk, 1, 1, ask.proof}, JoinFrame{JoinFrame::kAsk, 2, 2, ask.proof}}) {
    EXPECT_FALSE(check_proof(changed, kCommunicator, link, own));
  }
}

}  // namespace
}  // namespace riffle::link_joining_test
