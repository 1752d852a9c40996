// With several progress threads no communicator uses another one's link (shared_links.h), on
// whatever threads the two are.
#include <thread>

#include "test/plugin/transport/several_threads.h"
#include "test/plugin/transport/tcp/communicator_pairs.h"

namespace riffle::unshared_links_test {
namespace {

class UnsharedLinks : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
    ASSERT_EQ(connected_sockets(), 0u);
  }

 private:
  SeveralThreads two_{2};
};

TEST_F(UnsharedLinks, EveryCommunicatorHasItsOwnAndEndsAlone) {
  const auto payload = random_payload(100'000);
  std::vector<std::unique_ptr<CommunicatorPair>> pairs;
  std::vector<std::shared_ptr<Reactor>> between;
  for (std::size_t n = 1; n <= 4; ++n) {
    pairs.push_back(std::make_unique<CommunicatorPair>());
    between.push_back(Reactor::acquire(settings()));  // the next pair's sides change threads
    pairs.back()->open();
    ASSERT_TRUE(pairs.back()->is_open());
    EXPECT_EQ(connected_sockets(), 2 * n) << "both ends are here";
  }
  EXPECT_EQ(reactor_threads(), 2u);
  EXPECT_NE(pairs[0]->sides[0].reactor, pairs[0]->sides[1].reactor);
  EXPECT_EQ(pairs[0]->sides[0].reactor, pairs[1]->sides[1].reactor);
  const auto all_talk = [&] {
    std::vector<std::thread> threads;
    for (auto& pair : pairs) threads.emplace_back([&] { pair->talk(payload, 20); });
    for (std::thread& t : threads) t.join();
  };
  all_talk();
  pairs[1]->sides[0].abort();
  EXPECT_TRUE(pairs[1]->sides[1].sink.wait([](auto& s) { return s.lost_.size() == 1; }));
  pairs.erase(pairs.begin() + 1);
  EXPECT_TRUE(eventually([] { return connected_sockets() == 6; })) << connected_sockets();
  all_talk();
}

// The first one's sides are on two threads, and both of the second one on that of the first's
// node 1: an ask over the first one's link would come to node 0's thread, where none takes it.
TEST_F(UnsharedLinks, ACommunicatorOpensOnWhateverThreadsItsNodesAre) {
  const auto one = first_pair();
  Listeners all(2);
  std::array<PairSide, 2> two;
  for (std::size_t r : {0u, 1u}) {
    two[r].reactor = one->sides[1].reactor;
    two[r].make(std::move(all.listeners[r]), all.handles, static_cast<int>(r), of_streams(1), {});
  }
  for (int r : {0, 1}) two[static_cast<std::size_t>(r)].open(1 - r);
  for (PairSide& side : two) EXPECT_TRUE(side.is_open());
  EXPECT_EQ(connected_sockets(), 4u);
  one->talk();
}

}  // namespace
}  // namespace riffle::unshared_links_test
