// Communicators of the same two processes, which are one here, use one link: what ends with which
// of them, and that neither waits for the other.
#include "test/plugin/transport/tcp/communicator_pairs.h"
#include "test/sanitized.h"

namespace riffle::shared_links_test {
namespace {

class SharedLinks : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static TransportOptions options() {
    TransportOptions options = of_streams(std::get<0>(GetParam()));
    options.encryption.is_on = std::get<1>(GetParam());
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(StreamsAndEncryption, SharedLinks,
                         ::testing::Combine(::testing::Values(1, 4), ::testing::Bool()));

TEST_P(SharedLinks, CommunicatorsUseOneAndItGoesWithTheLast) {
  auto one = first_pair(options());
  const std::size_t sockets = connected_sockets();
  EXPECT_EQ(sockets, 2u * static_cast<std::size_t>(std::get<0>(GetParam())));
  std::vector<std::unique_ptr<CommunicatorPair>> others;
  const auto payload = random_payload(100'000);
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::make_unique<CommunicatorPair>(options()));
    others.back()->open();
    ASSERT_TRUE(others.back()->is_open());
    others.back()->talk(payload, 20);
  }
  EXPECT_EQ(connected_sockets(), sockets);
  one->close();
  for (auto& pair : others) pair->talk(payload, 5);
  others.front()->close();
  others.back()->talk(payload, 5);
  EXPECT_EQ(connected_sockets(), sockets);
  others.clear();
  EXPECT_TRUE(eventually([] { return connected_sockets() == 0; }));
}

// What a communicator is held against, where descriptors are few.
TEST_P(SharedLinks, OneThatJoinsTakesNoDescriptors) {
  const auto to_open = [](CommunicatorPair& pair) {
    std::array<std::size_t, 2> descriptors{};
    for (std::size_t r : {0u, 1u}) {
      PairSide& side = pair.sides[r];
      side.reactor->run_and_wait([&] { descriptors[r] = side.mesh->descriptors_to_open(); });
    }
    return descriptors;
  };
  const auto streams = static_cast<std::size_t>(std::get<0>(GetParam()));
  CommunicatorPair early(options());
  EXPECT_EQ(to_open(early), (std::array{streams, streams}));
  const auto one = first_pair(options());
  EXPECT_EQ(to_open(*one), (std::array<std::size_t, 2>{}));
  EXPECT_EQ(to_open(early), (std::array<std::size_t, 2>{}));
}

// Frames overtake each other on several streams; all of them come before the goodbye.
TEST_P(SharedLinks, OneThatClosesDeliversWhatWasQueued) {
  auto one = first_pair(options());
  auto two = std::make_unique<CommunicatorPair>(options());
  two->open();
  ASSERT_TRUE(two->is_open());
  constexpr std::size_t kFrames = kIsSanitized ? 60 : 200;
  const auto expected = random_payload(60'000);
  auto payload = expected;
  PairSide& sender = two->sides[0];
  sender.reactor->run_and_wait([&] {
    for (std::size_t i = 0; i < kFrames; ++i) {
      sender.mesh->send(1, numbered(i, payload.size()), payload, i, i % 3);
    }
  });
  sender.close();
  std::ranges::fill(payload, std::byte{0});  // ours again
  RecordingSink& sink = two->sides[1].sink;
  ASSERT_TRUE(sink.wait([](auto& s) { return !s.departed_.empty(); }));
  EXPECT_EQ(sink.frames_.size(), kFrames);
  for (const auto& f : sink.frames_) EXPECT_EQ(f.payload, expected);
  // The one that stays may go on sending.
  for (std::uint64_t i = 0; i < 5; ++i) two->sides[1].send(0, i, expected);
  EXPECT_TRUE(sink.wait([](auto& s) { return s.sent_.size() == 5; }));
  EXPECT_TRUE(sink.lost_.empty());
  two->close();
  one->talk(expected, 3);
}

// One is aborted on both sides in the midst of its frames; the other's arrive, every bit.
TEST_P(SharedLinks, AnAbortCostsTheOthersNothing) {
  auto one = first_pair(options());
  constexpr std::size_t kFrames = kIsSanitized ? 200 : 1000;
  const auto payload = random_payload(20'000);
  for (const std::size_t aborts : {0u, 1u}) {
    CommunicatorPair two(options());
    two.open();
    ASSERT_TRUE(two.is_open());
    auto large = std::make_unique<std::vector<std::byte>>(4 << 20);
    for (std::uint64_t i = 0; i < 8; ++i) {
      for (int r : {0, 1}) two.sides[static_cast<std::size_t>(r)].send(1 - r, i, *large);
    }
    std::thread talking([&] { one->talk(payload, kFrames); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    two.sides[aborts].abort();
    EXPECT_TRUE(two.sides[1 - aborts].sink.wait([](auto& s) { return s.lost_.size() == 1; }));
    two.sides[1 - aborts].abort();
    large.reset();
    talking.join();
    for (PairSide& side : one->sides) {
      const std::scoped_lock lock(side.sink.mutex_);
      side.sink.frames_.clear();
    }
  }
}

// The side that connects has a link, and the other one has not come to it: no ask may wait there.
TEST(SharedLinksOrder, NoneWaitsForACommunicatorThatIsOpenedLater) {
  ASSERT_TRUE(eventually([] { return connected_sockets() == 0; }));
  CommunicatorPair one, two;
  one.sides[1].open(0);
  two.sides[0].open(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  two.sides[1].open(0);
  EXPECT_TRUE(two.is_open());
  one.sides[0].open(1);
  EXPECT_TRUE(one.is_open());
  one.talk();
  two.talk();
}

// Three nodes, as node 0's doors are open for another one then: node 1 has its welcome at once.
TEST(SharedLinksOrder, ALinkThatThePeerHasNotTakenUpIsNotShared) {
  ASSERT_TRUE(eventually([] { return connected_sockets() == 0; }));
  Listeners all(3);
  std::array<PairSide, 3> big;
  for (int r = 0; r < 3; ++r) {
    big[static_cast<std::size_t>(r)].make(std::move(all.listeners[static_cast<std::size_t>(r)]),
                                          all.handles, r, of_streams(1), {});
  }
  big[0].open(2);
  big[1].open(0);
  ASSERT_TRUE(big[1].is_open());
  CommunicatorPair small;
  small.open();
  EXPECT_TRUE(small.is_open());
  small.talk();
}

TEST(SharedLinksOrder, TwoThreadsMayOpenInOppositeOrders) {
  const auto up = first_pair();
  for (int round = 0; round < 10; ++round) {
    std::array<CommunicatorPair, 2> pairs;
    std::array<std::thread, 2> threads;
    for (std::size_t r : {0u, 1u}) {
      threads[r] = std::thread([&, r] {
        for (const std::size_t at : {r, 1 - r}) {
          pairs[at].sides[r].open(static_cast<int>(1 - r));
        }
      });
    }
    for (std::thread& t : threads) t.join();
    for (CommunicatorPair& pair : pairs) {
      EXPECT_TRUE(pair.is_open());
      pair.talk();
    }
    EXPECT_EQ(connected_sockets(), 2u);
  }
}

// Within a call of one communicator's owner no other one's hears anything. (Both sides close, as
// one of them has the end of the link that the frames are queued at.)
TEST(SharedLinksOrder, ACloseOfOneCallsNoneOfTheOthers) {
  auto one = first_pair();
  CommunicatorPair two;
  two.open();
  ASSERT_TRUE(two.is_open());
  PairSide& mine = one->sides[0];
  const std::size_t had = mine.sink.sent_.size();
  mine.reactor->run_and_wait([&] {
    for (std::uint64_t i = 0; i < 5; ++i) mine.mesh->send(1, numbered(i), {}, i, 0);
    for (PairSide& side : two.sides) side.mesh->close();
    EXPECT_EQ(mine.sink.sent_.size(), had);
  });
  EXPECT_TRUE(mine.sink.wait([&](auto& s) { return s.sent_.size() == had + 5; }));
}

// As splits in one ncclGroup are.
TEST_P(SharedLinks, CommunicatorsThatAreCreatedAtOnceShareOne) {
  ASSERT_TRUE(eventually([] { return connected_sockets() == 0; }));
  std::vector<std::unique_ptr<CommunicatorPair>> all;
  for (int i = 0; i < 8; ++i) all.push_back(std::make_unique<CommunicatorPair>(options()));
  for (const std::size_t side : {1u, 0u}) {
    for (auto& pair : all) pair->sides[side].open(1 - static_cast<int>(side));
  }
  for (auto& pair : all) ASSERT_TRUE(pair->is_open());
  EXPECT_EQ(connected_sockets(), 2u * static_cast<std::size_t>(std::get<0>(GetParam())));
  for (auto& pair : all) pair->talk(random_payload(10'000), 3);
}

// ... in all orders, by a thread each.
TEST(SharedLinksOrder, CommunicatorsOfSeveralThreadsDoNotConnectOneEach) {
  ASSERT_TRUE(eventually([] { return connected_sockets() == 0; }));
  std::array<CommunicatorPair, 8> all;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const std::size_t side : {0u, 1u}) {
      threads.emplace_back([&, i, side] {
        std::this_thread::sleep_for(std::chrono::milliseconds((i * 5 + side * 11) % 7));
        all[i].sides[side].open(1 - static_cast<int>(side));
      });
    }
  }
  for (std::thread& t : threads) t.join();
  for (CommunicatorPair& pair : all) ASSERT_TRUE(pair.is_open());
  EXPECT_LE(connected_sockets(), 4u);
  for (CommunicatorPair& pair : all) pair.talk();
}

TEST(SharedLinksOrder, AnAskThatComesEarlyWaits) {
  const auto one = first_pair();
  const std::size_t sockets = connected_sockets();
  CommunicatorPair two;
  two.sides[1].open(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(two.sides[1].sink.opened_.empty());
  two.sides[0].open(1);
  EXPECT_TRUE(two.is_open());
  EXPECT_EQ(connected_sockets(), sockets);
  two.talk();
}

TEST(SharedLinksOrder, AnAskThatIsNeverAnsweredEndsAtTheConnectTimeout) {
  const auto one = first_pair();
  CommunicatorPair two(of_streams(1), {}, {.connect_timeout_ns = 300'000'000});
  two.sides[1].open(0);
  ASSERT_TRUE(two.sides[1].sink.wait([](auto& s) { return s.lost_.size() == 1; }, 2000));
  EXPECT_NE(two.sides[1].sink.lost_[0].find("RIFFLE_CONNECT_TIMEOUT"), std::string::npos)
      << two.sides[1].sink.lost_[0];
  one->talk();
}

// The link goes while one asks to join it.
TEST(SharedLinksOrder, AnAskWhoseLinkEndsConnectsInstead) {
  auto one = first_pair();
  CommunicatorPair two;
  two.sides[1].open(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  one->close();
  EXPECT_TRUE(eventually([] { return connected_sockets() == 1; })) << "waits at the door";
  two.sides[0].open(1);
  EXPECT_TRUE(two.is_open());
  two.talk();
}

}  // namespace
}  // namespace riffle::shared_links_test
