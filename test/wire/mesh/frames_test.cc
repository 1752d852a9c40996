// Frames over the strict library: intact, in order, of any size, however slow or short of requests
// the library is; and what a mesh does while nothing happens, and at its end.
#include <array>
#include <ctime>

#include "plugin/transport/nccl_net/slots.h"
#include "test/sanitized.h"
#include "test/wire/mesh/library_harness.h"

namespace riffle::library_frames_test {
namespace {

using library_test::behave;
using library_test::probe;
using library_test::random_bytes;

class LibraryFrames : public library_test::LibraryMeshTest {
 protected:
  // Frames of many sizes both ways, all at once.
  void exchange(std::size_t frames) { exchange(start_mesh(2, {}), frames); }
  void exchange(const std::vector<std::unique_ptr<Node>>& nodes, std::size_t frames) {
    const long unexpected = probe().unexpected;
    std::mt19937 random(7);
    std::vector<std::vector<std::byte>> payloads;
    for (std::size_t i = 0; i < frames; ++i) {
      const std::size_t size = i % 3 == 0    ? 0
                               : i % 50 == 1 ? kMaxFramePayload
                               : i % 7 == 1  ? random() % 400'000
                                             : random() % 9000;
      payloads.push_back(random_bytes(size, static_cast<std::uint32_t>(i)));
    }
    for (std::size_t i = 0; i < frames; ++i) {
      for (int from : {0, 1}) {
        nodes[static_cast<std::size_t>(from)]->send(1 - from, numbered(i, payloads[i].size()),
                                                    payloads[i], i, 1);
      }
    }
    for (auto& node : nodes) {
      ASSERT_TRUE(node->sink.wait(
          [&](auto& s) { return s.frames_.size() == frames && s.sent_.size() == frames; }, 60'000));
      for (std::size_t i = 0; i < frames; ++i) {
        EXPECT_EQ(number_of(node->sink.frames_[i].header), i) << "out of order";
        EXPECT_EQ(node->sink.frames_[i].payload, payloads[i]);
        EXPECT_EQ(node->sink.sent_[i], i);
      }
      EXPECT_TRUE(node->sink.lost_.empty());
    }
    EXPECT_EQ(probe().unexpected, unexpected) << "sent before the peer had a receive for it";
  }
};

TEST_F(LibraryFrames, ArriveIntactAndInOrder) { exchange(kIsSanitized ? 100 : 300); }

// The process of one of the two has other communicators.
TEST_F(LibraryFrames, WithMoreRoomOnOneSideThanOnTheOther) {
  Listeners all(2);
  std::vector<std::unique_ptr<Node>> nodes;
  while (nodes.size() < 2) nodes.push_back(std::make_unique<Node>());
  nodes[0]->start(std::move(all.listeners[0]), all.handles, 0, {});
  const nccl_net::SlotGrant most(127, 12), rest(127, 12);
  ASSERT_EQ(rest.of_each(), 2u) << "so nothing is left";
  nodes[1]->start(std::move(all.listeners[1]), all.handles, 1, {});
  for (auto& node : nodes) {
    ASSERT_TRUE(node->sink.wait([](auto& s) { return s.opened_.size() == 1; }));
  }
  exchange(nodes, 100);
}

TEST_F(LibraryFrames, OverALibraryThatIsSlow) {
  behave({.slow = 7});
  exchange(60);
}

TEST_F(LibraryFrames, OverALibraryThatTakesFewRequests) {
  for (const int requests : {1, 2, 5}) {
    behave({.requests = requests});
    exchange(60);
  }
}

TEST_F(LibraryFrames, OverALibraryThatWaitsInAccept) {
  behave({.waits = true});
  exchange(60);
}

TEST_F(LibraryFrames, OverALibraryThatTellsNoSizes) {
  behave({.is_mute = true});
  exchange(kIsSanitized ? 50 : 100);
}

TEST_F(LibraryFrames, OverALibraryWhoseConnectAndAcceptNeedEachOther) {
  behave({.slow = 2, .meets = true});
  exchange(10);
}

TEST_F(LibraryFrames, EightNodesTalkToAll) {
  constexpr int kNodes = 8;
  behave({.meets = true});
  auto nodes = start_mesh(kNodes, {});
  const auto payload = random_bytes(300'000, 1);
  for (int a = 0; a < kNodes; ++a) {
    for (int b = 0; b < kNodes; ++b) {
      if (a != b) nodes[static_cast<std::size_t>(a)]->send(b, numbered(1, 300'000), payload);
    }
  }
  for (auto& node : nodes) {
    ASSERT_TRUE(node->sink.wait([&](auto& s) { return s.frames_.size() == kNodes - 1; }));
    for (const auto& f : node->sink.frames_) EXPECT_EQ(f.payload, payload);
  }
}

TEST_F(LibraryFrames, LowerPriorityValueOvertakes) {
  auto nodes = start_mesh(2, {});
  const auto payload = random_bytes(100'000, 1);
  nodes[0]->reactor->run_and_wait([&] {
    for (std::uint64_t i = 0; i < 30; ++i) {
      nodes[0]->mesh->send(1, numbered(i, payload.size()), payload, 0, 2 - i % 3);
    }
  });
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.frames_.size() == 30; }));
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(2 - number_of(nodes[1]->sink.frames_[i].header) % 3, i / 10);
  }
}

TEST_F(LibraryFrames, AreCountedWhenTheyHaveLeft) {
  auto nodes = start_mesh(2, {});
  const auto payload = random_bytes(1'000'000, 1);
  nodes[0]->send(1, numbered(1, payload.size()), payload);
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.frames_.size() == 1; }));
  ASSERT_TRUE(nodes[0]->sink.wait([](auto& s) { return s.sent_.size() == 1; }));
  nodes[0]->reactor->run_and_wait([&] {
    EXPECT_GE(nodes[0]->mesh->counters(1).bytes_sent, payload.size());
    EXPECT_EQ(nodes[0]->mesh->counters(1).frames_sent, 1u);
    EXPECT_GE(nodes[0]->mesh->wire_account(1)->delivered_bytes, payload.size());
    EXPECT_GT(nodes[0]->mesh->activity(1).busy_ns, 0u);
  });
  nodes[1]->reactor->run_and_wait([&] {
    EXPECT_GE(nodes[1]->mesh->counters(0).bytes_received, payload.size());
    EXPECT_EQ(nodes[1]->mesh->counters(0).frames_received, 1u);
  });
}

TEST_F(LibraryFrames, HaveNoAccountBeforeTheyCanLeave) {
  Listeners all(2);
  Node node;
  node.start(std::move(all.listeners[0]), all.handles, 0, {});
  node.reactor->run_and_wait([&] { EXPECT_FALSE(node.mesh->wire_account(1)); });
}

// -- while nothing happens

TEST_F(LibraryFrames, TheLibraryIsNotAskedWhileNothingIsDue) {
  auto nodes = start_mesh(4, {});
  nodes[0]->send(1, numbered(1), {});
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.frames_.size() == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const long calls = probe().calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(probe().calls, calls);
}

// Who sleeps is told; the median, as this machine may have others to serve.
TEST_F(LibraryFrames, ANodeThatSleepsHearsOfAMessageAtOnce) {
  auto nodes = start_mesh(2, {});
  std::vector<double> times_ms;
  for (std::uint64_t i = 0; i < 15; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const auto begin = std::chrono::steady_clock::now();
    nodes[0]->send(1, numbered(i), {});
    ASSERT_TRUE(nodes[1]->sink.wait([&](auto& s) { return s.frames_.size() == i + 1; }));
    times_ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::ranges::sort(times_ms);
  EXPECT_LT(times_ms[times_ms.size() / 2], 3.0);
}

// A library that is never done keeps the thread asking, but not busy.
TEST_F(LibraryFrames, WaitingLeavesTheProcessorToOthers) {
  auto nodes = start_mesh(2, {});
  auto never_done = library_test::never("test");
  behave(never_done);
  nodes[0]->send(1, numbered(1), {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  timespec begin{}, end{};
  const long calls = probe().calls;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  const double busy_ms = 1e3 * static_cast<double>(end.tv_sec - begin.tv_sec) +
                         1e-6 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
  EXPECT_LT(busy_ms, kIsSanitized ? 360.0 : 200.0) << "the thread spins";
  EXPECT_GT(probe().calls, calls + 1000) << "the thread sleeps too long";
}

// -- the end

TEST_F(LibraryFrames, CloseDeliversWhatWasQueuedAndIsNoError) {
  auto nodes = start_mesh(2, {});
  constexpr std::size_t kFrames = 40;
  {
    auto payload = random_bytes(300'000, 3);
    nodes[0]->reactor->run_and_wait([&] {
      for (std::size_t i = 0; i < kFrames; ++i) {
        nodes[0]->mesh->send(1, numbered(i, payload.size()), payload, i, 0);
      }
    });
    nodes[0]->close();
    std::fill(payload.begin(), payload.end(), std::byte{0});  // ours again after close
  }
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return !s.departed_.empty(); }));
  EXPECT_EQ(nodes[1]->sink.frames_.size(), kFrames);
  const auto payload = random_bytes(300'000, 3);
  for (const auto& f : nodes[1]->sink.frames_) EXPECT_EQ(f.payload, payload);
  EXPECT_TRUE(nodes[1]->sink.lost_.empty());
}

// Those go over TCP, which stays for as long as the library has something to send.
TEST_F(LibraryFrames, CloseDeliversControlMessagesThatTheirOwnerForgets) {
  auto nodes = start_mesh(2, {});
  auto payload = random_bytes(1000, 3);
  FrameHeader control = numbered(1, payload.size());
  control.type = FrameType::kControl;
  nodes[0]->reactor->run_and_wait([&] {
    nodes[0]->mesh->send(1, control, payload, 1, 0);
    nodes[0]->mesh->send(1, numbered(2), {}, 2, 0);
    nodes[0]->mesh->close();
    nodes[0]->mesh.reset();
    std::ranges::fill(payload, std::byte{0});
  });
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return !s.departed_.empty(); }));
  ASSERT_EQ(nodes[1]->sink.frames_.size(), 2u);
  for (const auto& f : nodes[1]->sink.frames_) {
    const bool is_control = f.header.type == FrameType::kControl;
    EXPECT_EQ(f.payload, is_control ? random_bytes(1000, 3) : std::vector<std::byte>());
  }
}

// Leaves as soon as it is asked for a place, of which nothing may be written to then.
class LeavingSink : public RecordingSink {
 public:
  Result<std::byte*> get_receive_buffer(int, const FrameHeader&) override {
    mesh->close();
    mesh.reset();
    has_left = true;
    return place.data();
  }
  void arrived(int, const FrameHeader&, std::byte*) override { ADD_FAILURE() << "it has left"; }

  std::unique_ptr<TransportMesh> mesh;
  std::vector<std::byte> place = std::vector<std::byte>(kMaxFramePayload, std::byte{1});
  std::atomic<bool> has_left{false};
};

TEST_F(LibraryFrames, ControlMessagesAreNotWrittenToAnOwnerThatHasLeft) {
  Listeners all(2);
  Node sender;
  auto reactor = Reactor::acquire(settings());
  LeavingSink sink;
  reactor->run_and_wait([&] {
    sink.mesh =
        transport()->make_mesh(*reactor, std::move(all.listeners[1]), all.handles, 1, {}, &sink);
    sink.mesh->open(0);
  });
  sender.start(std::move(all.listeners[0]), all.handles, 0, {});
  ASSERT_TRUE(sender.sink.wait([](auto& s) { return s.opened_.size() == 1; }));
  const auto payload = random_bytes(kMaxFramePayload, 1);
  FrameHeader control = numbered(1, payload.size());
  control.type = FrameType::kControl;
  sender.send(1, control, payload);
  ASSERT_TRUE(sender.sink.wait([](auto& s) { return !s.departed_.empty(); }));
  EXPECT_TRUE(sink.has_left);
  EXPECT_TRUE(std::ranges::all_of(sink.place, [](std::byte b) { return b == std::byte{1}; }));
}

// TCP has a stream for each of the peer's addresses, so two are on their way at a time.
TEST_F(LibraryFrames, ControlMessagesOfSeveralStreamsArriveIntact) {
  Listeners all(2);
  auto& endpoints = all.handles[0].endpoints;  // to which node 1 connects
  endpoints.push_back(endpoints.front());
  std::array<Node, 2> nodes;
  for (int r : {0, 1}) {
    nodes[static_cast<std::size_t>(r)].start(std::move(all.listeners[static_cast<std::size_t>(r)]),
                                             all.handles, r, {});
  }
  for (Node& node : nodes) {
    ASSERT_TRUE(node.sink.wait([](auto& s) { return s.opened_.size() == 1; }));
  }
  constexpr std::uint64_t kFrames = 40;
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    payloads.push_back(random_bytes(kMaxFramePayload - 1000 * i, static_cast<std::uint32_t>(i)));
  }
  nodes[0].reactor->run_and_wait([&] {
    for (std::uint64_t i = 0; i < kFrames; ++i) {
      FrameHeader control = numbered(i, payloads[i].size());
      control.type = FrameType::kControl;
      nodes[0].mesh->send(1, control, payloads[i], i, 0);
    }
  });
  ASSERT_TRUE(nodes[1].sink.wait([](auto& s) { return s.frames_.size() == kFrames; }));
  for (const auto& f : nodes[1].sink.frames_) {
    EXPECT_TRUE(f.payload == payloads[number_of(f.header)]) << number_of(f.header);
  }
}

TEST_F(LibraryFrames, AControlMessageThatIsRefusedLosesItsPeer) {
  auto nodes = start_mesh(2, {});
  nodes[1]->sink.refuse(7);
  FrameHeader control = numbered(1, 0);
  NumberedFrame body = frame_of<NumberedFrame>(control);
  body.key = 7;
  control.body = body.encode();
  control.type = FrameType::kControl;
  nodes[0]->send(1, control, {});
  for (auto& node : nodes) {
    ASSERT_TRUE(node->sink.wait([](auto& s) { return !s.lost_.empty(); }));
    EXPECT_NE(node->sink.lost_.begin()->second.find("refused by the test"), std::string::npos);
  }
}

TEST_F(LibraryFrames, WhatIsSentToAPeerThatHasClosedCountsAsSent) {
  auto nodes = start_mesh(2, {});
  nodes[1]->close();
  ASSERT_TRUE(nodes[0]->sink.wait([](auto& s) { return !s.departed_.empty(); }));
  for (std::uint64_t i = 0; i < 5; ++i) nodes[0]->send(1, numbered(i), {}, 100 + i);
  ASSERT_TRUE(nodes[0]->sink.wait([](auto& s) { return s.sent_.size() == 5; }));
  EXPECT_TRUE(nodes[0]->sink.lost_.empty());
}

TEST_F(LibraryFrames, CloseInTheMiddleOfBothWays) {
  for (int run = 0; run < 20; ++run) {
    auto nodes = start_mesh(2, {});
    const auto payload = random_bytes(200'000, 3);
    for (std::uint64_t i = 0; i < 30; ++i) {
      nodes[0]->send(1, numbered(i, payload.size()), payload, i);
      nodes[1]->send(0, numbered(i, payload.size()), payload, i);
    }
    nodes[static_cast<std::size_t>(run % 2)]->close();
    auto& other = nodes[static_cast<std::size_t>(1 - run % 2)];
    ASSERT_TRUE(
        other->sink.wait([](auto& s) { return !s.departed_.empty() && s.sent_.size() == 30; }));
    EXPECT_EQ(other->sink.frames_.size(), 30u);
    EXPECT_TRUE(other->sink.lost_.empty());
  }
}

TEST_F(LibraryFrames, CloseAfterDismissDeliversWhatWasQueued) {
  auto nodes = start_mesh(2, {});
  const auto payload = random_bytes(1'000'000, 3);
  nodes[0]->reactor->run_and_wait([&] {
    nodes[0]->mesh->send(1, numbered(1, payload.size()), payload, 1, 0);
    nodes[0]->mesh->dismiss(1);
    nodes[0]->mesh->close();
    nodes[0]->mesh.reset();
  });
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return !s.departed_.empty(); }));
  ASSERT_EQ(nodes[1]->sink.frames_.size(), 1u);
  EXPECT_EQ(nodes[1]->sink.frames_[0].payload, payload);
}

// Its goodbye does not make it look as though all were in.
TEST_F(LibraryFrames, ACloseThatLeavesMessagesBehindIsALossOnTheOtherSide) {
  auto nodes = start_mesh(2, {});
  behave(library_test::never("isend"));
  nodes[0]->send(1, numbered(1), {});
  nodes[0]->close();
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return !s.lost_.empty(); }, 12'000));
  EXPECT_NE(nodes[1]->sink.lost_[0].find("what it had sent did not leave"), std::string::npos)
      << nodes[1]->sink.lost_[0];
  EXPECT_TRUE(nodes[1]->sink.departed_.empty());
}

// Neither waits for the other one to take what it has queued.
TEST_F(LibraryFrames, CloseOfBothAtOnceIsOverSoon) {
  auto nodes = start_mesh(2, {});
  const auto payload = random_bytes(200'000, 3);
  behave({.slow = 20});
  nodes[0]->reactor->run_and_wait([&] {
    for (int from : {0, 1}) {
      auto& mesh = *nodes[static_cast<std::size_t>(from)]->mesh;
      // One end comes long before the other one's queue is empty.
      for (std::uint64_t i = 0; i < (from == 0 ? 2 : 500); ++i) {
        mesh.send(1 - from, numbered(i, payload.size()), payload, i, 0);
      }
    }
    for (auto& node : nodes) {
      node->mesh->close();
      node->mesh.reset();
    }
  });
  EXPECT_TRUE(eventually([] { return probe().sends + probe().receives == 0; }, 3000));
}

TEST_F(LibraryFrames, ADismissedPeerHearsAGoodbyeAndSaysNoMore) {
  auto nodes = start_mesh(3, {});
  const auto payload = random_bytes(200'000, 3);
  nodes[0]->send(1, numbered(1, payload.size()), payload);
  nodes[0]->reactor->run_and_wait([&] { nodes[0]->mesh->dismiss(1); });
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return !s.departed_.empty(); }));
  EXPECT_EQ(nodes[1]->sink.frames_.size(), 1u);
  EXPECT_TRUE(nodes[1]->sink.lost_.empty());
  nodes[0]->send(2, numbered(2), {});
  ASSERT_TRUE(nodes[2]->sink.wait([](auto& s) { return s.frames_.size() == 1; }));
  EXPECT_TRUE(nodes[0]->sink.departed_.empty());
}

// More than one turn takes.
TEST_F(LibraryFrames, WhatAPeerSentBeforeItWasLostArrives) {
  auto nodes = start_mesh(2, {});
  constexpr std::uint64_t kFrames = 12;
  behave(library_test::never("test"));
  nodes[0]->reactor->run_and_wait([&] {
    for (std::uint64_t i = 0; i < kFrames; ++i) nodes[0]->mesh->send(1, numbered(i), {}, i, 0);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  nodes[0]->reactor->run_and_wait([&] {
    behave({});
    nodes[0]->mesh.reset();
  });
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return !s.lost_.empty(); }));
  EXPECT_EQ(nodes[1]->sink.frames_.size(), kFrames);
}

TEST_F(LibraryFrames, AbortIsALossOnTheOtherSide) {
  auto nodes = start_mesh(2, {});
  {
    const auto payload = random_bytes(4'000'000, 3);
    nodes[0]->send(1, numbered(1, payload.size()), payload);
    nodes[0]->abort();
  }
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return !s.lost_.empty(); }));
  EXPECT_TRUE(nodes[1]->sink.departed_.empty());
}

}  // namespace
}  // namespace riffle::library_frames_test
