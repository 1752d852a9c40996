// What communicators must have in common to share a link, and what stays each one's own.
#include "test/plugin/transport/tcp/communicator_pairs.h"

namespace riffle::shared_links_terms_test {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

TEST(SharedLinksTerms, OnesThatDifferConnectTheirOwn) {
  const auto one = first_pair();
  const std::size_t sockets = connected_sockets();
  // The one that accepts refuses; then the one that connects does not ask.
  for (const bool accepting : {true, false}) {
    const MeshOptions other = {.peer_timeout_ns = 30 * kSecondNs};
    CommunicatorPair two(of_streams(1), accepting ? other : MeshOptions(),
                         accepting ? MeshOptions() : other);
    two.open();
    EXPECT_TRUE(two.is_open());
    EXPECT_EQ(connected_sockets(), sockets + 2);
    two.talk();
    two.close();
    EXPECT_TRUE(eventually([&] { return connected_sockets() == sockets; }));
  }
  CommunicatorPair more(of_streams(2));
  more.open();
  EXPECT_TRUE(more.is_open());
  EXPECT_EQ(connected_sockets(), sockets + 4);
}

TEST(SharedLinksTerms, WhoDoesNotKnowTheSecretDoesNotJoin) {
  const auto one = first_pair();
  CommunicatorPair two(of_streams(1), {}, {}, false);
  two.open();
  EXPECT_TRUE(two.sides[1].sink.wait([](auto& s) { return s.lost_.size() == 1; }));
  EXPECT_TRUE(two.sides[0].sink.opened_.empty());
  one->talk();
}

TEST(SharedLinksTerms, WeightsAddStreamsOfWhichAllHaveTheMost) {
  const auto one = first_pair();
  CommunicatorPair two;
  two.open();
  ASSERT_TRUE(two.is_open());
  const auto weigh = [](CommunicatorPair& pair, int weight) {
    for (PairSide& side : pair.sides) {
      side.reactor->run_and_wait([&] { side.mesh->set_peer_weights(std::vector<int>(2, weight)); });
    }
  };
  weigh(*one, 3);
  EXPECT_TRUE(eventually([] { return connected_sockets() == 6; })) << connected_sockets();
  weigh(two, 5);
  EXPECT_TRUE(eventually([] { return connected_sockets() == 10; })) << connected_sockets();
  weigh(two, 2);
  const auto payload = random_payload(100'000);
  one->talk(payload, 10);
  two.talk(payload, 10);
  EXPECT_EQ(connected_sockets(), 10u);
}

TEST(SharedLinksTerms, TrafficIsCountedByCommunicator) {
  struct Count {
    LinkCounters counters;
    NicBytes others;
    LinkActivity activity;
  };
  const auto one = first_pair();
  CommunicatorPair two;
  two.open();
  ASSERT_TRUE(two.is_open());
  const auto count = [](CommunicatorPair& pair) {
    Count is;
    pair.sides[0].reactor->run_and_wait([&] {
      TransportMesh& mesh = *pair.sides[0].mesh;
      is = {mesh.counters(1), mesh.others_on_nics(), mesh.activity(1)};
    });
    return is;
  };
  const Count one_before = count(*one), two_before = count(two);
  two.talk(random_payload(1 << 20), 20);
  const Count one_after = count(*one), two_after = count(two);
  constexpr std::uint64_t kBytes = 20 * (kFrameHeaderBytes + (1 << 20));
  EXPECT_EQ(one_after.counters.bytes_sent, one_before.counters.bytes_sent);
  EXPECT_EQ(two_after.counters.bytes_sent, two_before.counters.bytes_sent + kBytes);
  // Both nodes are here, and other tests may run beside.
  EXPECT_GE(one_after.others.out, one_before.others.out + 2 * kBytes);
  // What the kernel delivered.
  EXPECT_EQ(one_after.activity.out_bytes, one_before.activity.out_bytes);
  EXPECT_TRUE(eventually(
      [&] { return count(two).activity.out_bytes == two_before.activity.out_bytes + kBytes; }));
  // ... and for how long it was under way, which it counts in milliseconds.
  EXPECT_TRUE(eventually([&] {
    two.talk(random_payload(1 << 20), 20);
    return count(two).activity.busy_ns > two_before.activity.busy_ns;
  }));
  EXPECT_EQ(count(*one).activity.busy_ns, one_before.activity.busy_ns);
}

}  // namespace
}  // namespace riffle::shared_links_terms_test
