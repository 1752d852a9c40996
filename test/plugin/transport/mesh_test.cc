// Meshes over TCP: frames of every size arrive intact whatever stream they took, priorities,
// goodbyes.
#include <random>

#include "test/plugin/transport/transport_harness.h"
#include "test/sanitized.h"

namespace riffle::mesh_test {
namespace {

// A payload stands before the nodes that send it: the receiver may have all of it while the sender
// is still in the call.
std::vector<std::byte> random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

class MeshStreams : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, MeshStreams, ::testing::Values(1, 2, 5, 16));

TEST_P(MeshStreams, RandomFramesArriveIntactBothWays) {
  auto nodes = start_mesh(2, {.streams = GetParam()});
  constexpr std::size_t kFrames = kIsSanitized ? 100 : 300;
  std::mt19937 random(7);
  std::vector<std::vector<std::byte>> payloads;
  for (std::size_t i = 0; i < kFrames; ++i) {
    const std::size_t size = i % 3 == 0 ? 0 : i % 50 == 1 ? kMaxFramePayload : random() % 9000;
    payloads.push_back(random_bytes(size, static_cast<std::uint32_t>(i)));
  }
  for (std::size_t i = 0; i < kFrames; ++i) {
    for (int from : {0, 1}) {
      NumberedFrame frame;
      frame.number = i;
      frame.large = 1ull << 40 | i;
      frame.key = 17;
      const FrameHeader h = header_of(frame, payloads[i].size());
      nodes[static_cast<std::size_t>(from)]->send(1 - from, h, payloads[i], i, random() % 5);
    }
  }
  for (auto& node : nodes) {
    ASSERT_TRUE(node->sink.wait(
        [&](auto& s) { return s.frames_.size() == kFrames && s.sent_.size() == kFrames; }));
    std::vector<bool> seen(kFrames);
    for (const auto& f : node->sink.frames_) {
      const auto frame = frame_of<NumberedFrame>(f.header);
      EXPECT_FALSE(seen.at(frame.number));
      seen[frame.number] = true;
      EXPECT_EQ(f.payload, payloads[frame.number]);
      EXPECT_EQ(frame.large, 1ull << 40 | frame.number);
      EXPECT_EQ(frame.key, 17u);
    }
    EXPECT_TRUE(node->sink.lost_.empty());
  }
}

TEST(Mesh, EightNodesTalkToAll) {
  constexpr int kNodes = 8;
  const auto payload = random_bytes(100'000, 1);
  auto nodes = start_mesh(kNodes, {.streams = 2});
  for (int a = 0; a < kNodes; ++a) {
    for (int b = 0; b < kNodes; ++b) {
      if (a != b) nodes[static_cast<std::size_t>(a)]->send(b, numbered(1, 100'000), payload);
    }
  }
  for (auto& node : nodes) {
    ASSERT_TRUE(node->sink.wait([&](auto& s) { return s.frames_.size() == kNodes - 1; }));
    std::vector<int> from;
    for (const auto& f : node->sink.frames_) {
      from.push_back(f.peer);
      EXPECT_EQ(f.payload, payload);
    }
    std::sort(from.begin(), from.end());
    EXPECT_EQ(std::unique(from.begin(), from.end()), from.end());
  }
  for (auto& node : nodes) {
    node->reactor->run_and_wait([&] {
      for (int peer = 0; peer < kNodes; ++peer) {
        if (peer == node->mesh->rank()) continue;
        const bool accepted = peer > node->mesh->rank();
        EXPECT_EQ(node->mesh->hops(peer), accepted ? 0 : -1) << "on loopback";
      }
    });
  }
}

TEST(Mesh, LowerPriorityValueOvertakes) {
  const auto payload = random_bytes(100'000, 1);
  auto nodes = start_mesh(2, {.streams = 1});
  // All queued within one turn of the reactor: the order on the wire is then that of priorities.
  nodes[0]->reactor->run_and_wait([&] {
    for (std::uint64_t i = 0; i < 30; ++i) {
      nodes[0]->mesh->send(1, numbered(i, payload.size()), payload, 0, 2 - i % 3);
    }
  });
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.frames_.size() == 30; }));
  std::vector<std::uint64_t> order;
  for (const auto& f : nodes[1]->sink.frames_) order.push_back(number_of(f.header));
  std::vector<std::uint64_t> expected;
  for (std::uint64_t priority = 0; priority < 3; ++priority) {
    for (std::uint64_t i = 0; i < 30; ++i) {
      if (2 - i % 3 == priority) expected.push_back(i);
    }
  }
  EXPECT_EQ(order, expected);
}

TEST(Mesh, CloseDeliversWhatWasQueuedAndIsNoError) {
  auto nodes = start_mesh(2, {.streams = 3});
  constexpr std::size_t kFrames = 40;
  {
    auto payload = random_bytes(200'000, 3);
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
  const auto expected = random_bytes(200'000, 3);
  for (const auto& f : nodes[1]->sink.frames_) EXPECT_EQ(f.payload, expected);
  // The one that stays may go on sending; nobody reads it, and it is no error.
  const auto more = random_bytes(1 << 20, 4);
  for (std::uint64_t i = 0; i < 20; ++i) nodes[1]->send(0, numbered(i, more.size()), more, i);
  EXPECT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.sent_.size() == 20; }));
  EXPECT_TRUE(nodes[1]->sink.lost_.empty());
}

TEST(Mesh, AbortIsALostPeer) {
  const auto payload = random_bytes(5000, 1);
  auto nodes = start_mesh(3, {.streams = 2});
  nodes[0]->abort();
  for (std::size_t r : {1, 2}) {
    ASSERT_TRUE(nodes[r]->sink.wait([](auto& s) { return s.lost_.count(0) == 1; }));
    EXPECT_NE(nodes[r]->sink.lost_[0].find("127.0.0.1:"), std::string::npos)
        << nodes[r]->sink.lost_[0];
    EXPECT_EQ(nodes[r]->sink.lost_.size(), 1u);
  }
  // The link between the survivors lives on.
  nodes[1]->send(2, numbered(9, payload.size()), payload);
  EXPECT_TRUE(nodes[2]->sink.wait([](auto& s) { return s.frames_.size() == 1; }));
}

TEST(Mesh, APlaceRefusedLosesThePeerWithThatReason) {
  auto nodes = start_mesh(2, {.streams = 2});
  nodes[1]->sink.refuse(99);
  NumberedFrame frame;
  frame.key = 99;
  const FrameHeader h = header_of(frame);
  nodes[0]->send(1, h, {});
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.lost_.count(0) == 1; }));
  EXPECT_NE(nodes[1]->sink.lost_[0].find("refused by the test"), std::string::npos);
  EXPECT_TRUE(nodes[0]->sink.wait([](auto& s) { return s.lost_.count(1) == 1; }));
}

TEST(Mesh, AnIdleLinkLivesOnHeartbeats) {
  auto nodes = start_mesh(2, {.streams = 2, .peer_timeout_ns = 300'000'000});
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  EXPECT_TRUE(nodes[0]->sink.lost_.empty());
  nodes[0]->send(1, numbered(1, 0), {});
  EXPECT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.frames_.size() == 1; }));
}

TEST(Mesh, ANodeThatNeverComesIsLostAfterTheConnectTimeout) {
  Listeners all(2);
  for (int rank : {0, 1}) {
    Node alone;
    Listeners own(2);
    alone.start(std::move(own.listeners[static_cast<std::size_t>(rank)]), own.handles, rank,
                {.streams = 2, .connect_timeout_ns = 300'000'000});
    ASSERT_TRUE(alone.sink.wait([&](auto& s) { return s.lost_.count(1 - rank) == 1; }, 2000));
    EXPECT_NE(alone.sink.lost_[1 - rank].find("RIFFLE_CONNECT_TIMEOUT"), std::string::npos)
        << alone.sink.lost_[1 - rank];
  }
}

// Nodes with different RIFFLE_STREAMS connect: the comparison of knobs is to name the culprit.
TEST(Mesh, DifferentStreamCountsConnect) {
  Listeners all(2);
  Node a, b;
  a.start(std::move(all.listeners[0]), all.handles, 0, {.streams = 2});
  b.start(std::move(all.listeners[1]), all.handles, 1, {.streams = 4});
  EXPECT_TRUE(a.sink.wait([](auto& s) { return s.opened_.size() == 1; }));
  EXPECT_TRUE(b.sink.wait([](auto& s) { return s.opened_.size() == 1; }));
}

// Weights add streams while frames flow and nodes come to their end.
TEST(Mesh, SharesAddStreamsAndLoseNothing) {
  const auto payload = random_bytes(300'000, 6);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const bool counts = round % 10 == 0;
    // Nobody is left who still closes descriptors.
    if (counts) {
      ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
    }
    auto nodes = start_mesh(3, {.streams = 1});
    const std::size_t before = open_descriptors();
    for (std::size_t r = 0; r < 3; ++r) {
      const int far = r == 0 ? 1 : 0, near = r == 2 ? 1 : 2;
      std::vector<int> weights(3, 1);
      weights[static_cast<std::size_t>(far)] = r < 2 ? 16 : 3;
      weights[static_cast<std::size_t>(near)] = r == 0 ? 3 : 1;
      nodes[r]->reactor->run_and_wait([&] { nodes[r]->mesh->set_peer_weights(weights); });
    }
    if (counts) {
      // 15 more between nodes 0 and 1, 2 more between nodes 0 and 2, both ends in this process.
      EXPECT_TRUE(eventually([&] { return open_descriptors() == before + 2 * 17; }))
          << open_descriptors() - before;
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    }
    constexpr std::size_t kFrames = 12;
    for (std::size_t r : {0, 1}) {
      for (std::uint64_t i = 0; i < kFrames; ++i) {
        nodes[r]->send(1 - static_cast<int>(r), numbered(i, payload.size()), payload, i);
      }
    }
    nodes[round % 2 == 0 ? 0 : 1]->close();
    nodes[round % 2 == 0 ? 1 : 0]->close();
    ASSERT_TRUE(nodes[2]->sink.wait([](auto& s) { return s.departed_.size() == 2; }));
    for (const auto& node : nodes) EXPECT_TRUE(node->sink.lost_.empty());
    const auto& second = nodes[round % 2 == 0 ? 1 : 0]->sink;
    if (!second.departed_.empty()) {
      EXPECT_EQ(second.frames_.size(), kFrames);
    }
  }
}

TEST(Mesh, SharesHoldForLinksThatOpenLater) {
  const auto payload = random_bytes(100'000, 7);
  std::size_t fair = 0;  // descriptors
  for (const std::vector<int>& weights : {std::vector<int>(), std::vector{5, 5}}) {
    ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
    Listeners all(2);
    std::array<Node, 2> nodes;
    for (int r : {0, 1}) {
      Node& node = nodes[static_cast<std::size_t>(r)];
      node.start(std::move(all.listeners[static_cast<std::size_t>(r)]), all.handles, r,
                 {.streams = 2});
      node.reactor->run_and_wait([&] { node.mesh->set_peer_weights(weights); });
    }
    for (Node& node : nodes) {
      ASSERT_TRUE(node.sink.wait([](auto& s) { return s.opened_.size() == 1; }));
    }
    if (weights.empty()) {
      fair = open_descriptors();
      continue;
    }
    // 10 streams instead of 2, both ends in this process.
    EXPECT_TRUE(eventually([&] { return open_descriptors() == fair + 16; })) << open_descriptors();
    for (std::uint64_t i = 0; i < 50; ++i) {
      nodes[0].send(1, numbered(i, payload.size()), payload, i);
    }
    EXPECT_TRUE(nodes[1].sink.wait([](auto& s) { return s.frames_.size() == 50; }));
  }
}

TEST(Mesh, CreatingAndDestroyingLeavesNothingBehind) {
  start_mesh(2, {.streams = 2}).clear();
  ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    auto nodes = start_mesh(2, {.streams = 2});
    if (i % 2) nodes[static_cast<std::size_t>(i / 2 % 2)]->abort();
  }
  EXPECT_TRUE(
      eventually([&] { return reactor_threads() == 0 && open_descriptors() == before; }, 7000))
      << reactor_threads() << " threads, " << open_descriptors() << " descriptors, before "
      << before;
}

}  // namespace
}  // namespace riffle::mesh_test
