// Rates from live traffic: what a node concludes from its own links, and what node 0 believes of
// the network over the replanning intervals, on made-up traces with contention, noise and pauses.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "topology/plan/replan.h"
#include "topology/probe/live_rates.h"
#include "topology/probe/passive.h"

namespace riffle::probe::passive_rates_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr int kPeers = 7;

// Payload bytes that a link of so many kbit/s carries in a time.
std::uint64_t payload(double kbps, std::uint64_t ns) {
  return static_cast<std::uint64_t>(kbps * 1448 / 1514 / 8e6 * static_cast<double>(ns));
}

struct Traffic {
  double out_kbps = 0, in_kbps = 0;  // over all peers
  int busy_peers = 0;                // from peer 1 on
  bool peers_wait_for_us = false;
  int full_peers = 0;    // from peer 1 on
  int shared_peers = 0;  // from peer 1 on
  double others_out_kbps = 0, others_in_kbps = 0;
};

// `samples` samples of about 10 ms with rates that wander by `noise`.
void feed(RateMeter* meter, const Traffic& traffic, int samples, double noise,
          std::mt19937_64* random) {
  std::uniform_real_distribution<double> wander(1 - noise, 1 + noise);
  for (int s = 0; s < samples; ++s) {
    const std::uint64_t ns = 10 * kMs + (*random)() % kMs;
    std::vector<LinkSample> links(kPeers + 1);
    for (int p = 1; p <= kPeers; ++p) {
      links[p].out_bytes = payload(traffic.out_kbps / kPeers * wander(*random), ns);
      links[p].in_bytes = payload(traffic.in_kbps / kPeers * wander(*random), ns);
      links[p].busy_ns = p <= traffic.busy_peers ? ns : ns / 5;
      links[p].peer_waits_for_us = traffic.peers_wait_for_us;
      links[p].peer_is_full = p <= traffic.full_peers;
      links[p].peer_is_shared = p <= traffic.shared_peers;
    }
    meter->add(ns, links,
               {payload(traffic.others_out_kbps * wander(*random), ns),
                payload(traffic.others_in_kbps * wander(*random), ns)});
  }
}

TEST(RateMeter, ASlowSenderFindsItsOwnRate) {
  std::mt19937_64 random(1);
  RateMeter meter(kPeers + 1);
  for (int collective = 0; collective < 4; ++collective) {
    feed(&meter, {100'000, 80'000, kPeers, false}, 100, 0.3, &random);
    feed(&meter, {30'000, 30'000, 2, false}, 20, 0.3, &random);
    meter.pause();
  }
  const PassiveReport r = meter.take();
  EXPECT_NEAR(static_cast<double>(r.out.limit_kbps), 100'000, 5'000);
  EXPECT_GT(r.out.limit_ms, 3500);
  EXPECT_EQ(r.in.limit_kbps, 0);
  EXPECT_NEAR(static_cast<double>(r.in.peak_kbps), 80'000, 8'000);
}

TEST(RateMeter, ASlowReceiverIsToldAndMeasuresItself) {
  std::mt19937_64 random(2);
  RateMeter sender(kPeers + 1);
  feed(&sender, {200'000, 200'000, 1, false}, 50, 0.2, &random);
  EXPECT_TRUE(sender.blocked_by(1));
  for (int p = 2; p <= kPeers; ++p) EXPECT_FALSE(sender.blocked_by(p));
  EXPECT_EQ(sender.take().out.limit_kbps, 0);  // not its own link's doing

  RateMeter receiver(kPeers + 1);
  feed(&receiver, {40'000, 98'000, 0, true}, 100, 0.3, &random);
  const PassiveReport r = receiver.take();
  EXPECT_NEAR(static_cast<double>(r.in.limit_kbps), 98'000, 5'000);
  EXPECT_EQ(r.out.limit_kbps, 0);
}

// At the end of a round only the slow peer's part is left to send.
TEST(RateMeter, WaitingForTheLastPeerIsNotOurOwnLimit) {
  std::mt19937_64 random(9);
  RateMeter sender(kPeers + 1);
  for (int round = 0; round < 5; ++round) {
    feed(&sender, {300'000, 300'000, 0, false}, 10, 0.2, &random);
    for (int s = 0; s < 40; ++s) {
      std::vector<LinkSample> links(kPeers + 1);
      links[1] = {payload(20'000, 10 * kMs), 0, 10 * kMs, false};
      sender.add(10 * kMs, links);
      EXPECT_TRUE(sender.blocked_by(1));
    }
  }
  EXPECT_EQ(sender.take().out.limit_kbps, 0);
}

TEST(RateMeter, TheApplicationsPaceIsNoRate) {
  std::mt19937_64 random(3);
  RateMeter meter(kPeers + 1);
  feed(&meter, {50'000, 50'000, 0, false}, 200, 0.3, &random);
  const PassiveReport slow = meter.take();
  EXPECT_EQ(slow.out.limit_kbps, 0);
  EXPECT_EQ(slow.in.limit_kbps, 0);
  EXPECT_NEAR(static_cast<double>(slow.out.peak_kbps), 50'000, 5'000);
  const PassiveReport nothing = meter.take();
  EXPECT_EQ(nothing, PassiveReport());
}

TEST(RateMeter, ANicThatIsBusyWithOthersIsNotSlow) {
  std::mt19937_64 random(4);
  RateMeter meter(kPeers + 1);
  meter.set_own_rate(100'000, 100'000);
  Traffic traffic = {30'000, 20'000, kPeers, true};
  traffic.others_out_kbps = 70'000;
  traffic.others_in_kbps = 80'000;
  feed(&meter, traffic, 100, 0.1, &random);
  EXPECT_TRUE(meter.is_shared());
  const PassiveReport busy = meter.take();
  EXPECT_NEAR(static_cast<double>(busy.out.limit_kbps), 100'000, 5'000);
  EXPECT_NEAR(static_cast<double>(busy.in.limit_kbps), 100'000, 5'000);
  EXPECT_NEAR(static_cast<double>(busy.out.peak_kbps), 30'000, 3'000);

  // Traffic that is not known leaves less of the link, beside others' as without them.
  traffic.others_out_kbps = traffic.others_in_kbps = 20'000;
  feed(&meter, traffic, 100, 0.1, &random);
  EXPECT_FALSE(meter.is_shared());
  const PassiveReport contended = meter.take();
  EXPECT_NEAR(static_cast<double>(contended.out.limit_kbps), 50'000, 3'000);
  EXPECT_NEAR(static_cast<double>(contended.in.limit_kbps), 40'000, 3'000);
}

TEST(RateMeter, WaitingForAPeerThatIsFullWithOthersSaysNothing) {
  std::mt19937_64 random(5);
  RateMeter meter(kPeers + 1);
  Traffic traffic = {50'000, 50'000, kPeers, false, kPeers, kPeers};
  feed(&meter, traffic, 100, 0.1, &random);
  EXPECT_EQ(meter.take().out.limit_kbps, 0);
  traffic.shared_peers = 0;  // full with our own communicator's: both ends are the limit
  feed(&meter, traffic, 100, 0.1, &random);
  EXPECT_NEAR(static_cast<double>(meter.take().out.limit_kbps), 50'000, 5'000);
}

TEST(RateMeter, AnUplinkIsNeitherEndsFault) {
  std::mt19937_64 random(8);
  RateMeter meter(kPeers + 1);
  std::vector<bool> is_far(kPeers + 1, false);
  for (int p = 1; p <= 4; ++p) is_far[p] = true;
  meter.set_far(is_far);
  feed(&meter, {140'000, 140'000, 4, false}, 100, 0.2, &random);  // waits towards the far ones
  for (int p = 1; p <= kPeers; ++p) EXPECT_FALSE(meter.blocked_by(p)) << p;
  const PassiveReport r = meter.take();
  EXPECT_EQ(r.out.limit_kbps, 0);
  EXPECT_NEAR(static_cast<double>(r.far.limit_kbps), 80'000, 6'000);
  EXPECT_GT(r.far.limit_ms, 800);
}

TEST(RateMeter, AFullLinkBlamesNobody) {
  std::mt19937_64 random(10);
  RateMeter meter(kPeers + 1);
  meter.set_own_rate(400'000, 400'000);
  feed(&meter, {200'000, 300'000, 1, false}, 50, 0.2, &random);
  EXPECT_TRUE(meter.blocked_by(1));
  EXPECT_FALSE(meter.is_full());
  feed(&meter, {390'000, 300'000, 1, false}, 50, 0.2, &random);
  EXPECT_FALSE(meter.blocked_by(1)) << "our own link is what it waits for";
  EXPECT_FALSE(meter.is_full());
  feed(&meter, {200'000, 390'000, 1, false}, 50, 0.2, &random);
  EXPECT_TRUE(meter.blocked_by(1));
  EXPECT_TRUE(meter.is_full());
}

// What waits for full receivers is nobody's fault but theirs; the others tell.
TEST(RateMeter, WaitingForFullPeersSaysNothingOfOurLink) {
  std::mt19937_64 random(11);
  RateMeter meter(kPeers + 1);
  feed(&meter, {150'000, 100'000, 6, false, 6}, 100, 0.2, &random);
  EXPECT_EQ(meter.take().out.limit_kbps, 0) << "the seventh does not wait";
  feed(&meter, {150'000, 100'000, kPeers, false, 6}, 100, 0.2, &random);
  EXPECT_NEAR(static_cast<double>(meter.take().out.limit_kbps), 150'000, 8'000);
  feed(&meter, {150'000, 100'000, kPeers, false, kPeers}, 100, 0.2, &random);
  EXPECT_NEAR(static_cast<double>(meter.take().out.limit_kbps), 150'000, 8'000)
      << "with nobody else to ask it may be ours";
}

// ------------------------------------------------------------------------------------------------

constexpr std::int64_t kBase = 400'000;

PassiveReport report(std::int64_t out_limit, std::int64_t in_limit, std::int64_t peak) {
  PassiveReport r;
  r.active_ms = 2000;
  r.out = {out_limit, std::max(peak, out_limit), out_limit > 0 ? 1500 : 0};
  r.in = {in_limit, std::max(peak, in_limit), in_limit > 0 ? 1500 : 0};
  return r;
}

// Seven nodes that carry `peak` and one, node 3, that is the limit.
std::vector<PassiveReport> interval(std::int64_t limit_of_3, std::int64_t peak, double noise,
                                    std::mt19937_64* random) {
  std::uniform_real_distribution<double> wander(1 - noise, 1 + noise);
  const auto noisy = [&](std::int64_t kbps) {
    return static_cast<std::int64_t>(static_cast<double>(kbps) * wander(*random));
  };
  std::vector<PassiveReport> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(i == 3 ? report(noisy(limit_of_3), noisy(limit_of_3), 0)
                         : report(0, 0, noisy(peak)));
  }
  return all;
}

TEST(LiveRates, NoiseOnAnEvenNetworkIsExactlyTheEvenNetwork) {
  std::mt19937_64 random(4);
  const Fabric base = even_fabric(8, kBase);
  LiveRates rates(base, false);
  std::uniform_real_distribution<double> wander(0.94, 1.05);
  for (int e = 0; e < 50; ++e) {
    std::vector<PassiveReport> all;
    for (int i = 0; i < 8; ++i) {
      const auto kbps = static_cast<std::int64_t>(kBase * wander(random));
      all.push_back(random() % 3 == 0 ? report(0, 0, kbps) : report(kbps, 0, kbps));
    }
    rates.update(all);
    const Fabric live = rates.fabric();
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(live.nodes[i].out_kbps, kBase) << "replanning interval " << e << ", node " << i;
      EXPECT_EQ(live.nodes[i].in_kbps, kBase);
    }
  }
}

TEST(LiveRates, ContentionIsFoundAndForgotten) {
  std::mt19937_64 random(5);
  const Fabric base = even_fabric(8, kBase);
  LiveRates rates(base, false);
  for (int e = 0; e < 2; ++e) rates.update(interval(100'000, 250'000, 0.05, &random));
  Fabric live = rates.fabric();
  EXPECT_NEAR(static_cast<double>(live.nodes[3].out_kbps), 100'000, 8'000);
  EXPECT_NEAR(static_cast<double>(live.nodes[3].in_kbps), 100'000, 8'000);
  for (int i = 0; i < 8; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(live.nodes[i].out_kbps, kBase) << i;
  }
  EXPECT_EQ(describe_change(base, live).substr(0, 16), "node 3 now sends");
  // It ends. The plan spares node 3, so nothing shows what its link could carry but that it carries
  // more than before.
  int intervals = 0;
  do {
    std::vector<PassiveReport> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(i == 3 ? report(0, 0, 230'000) : report(390'000, 0, 390'000));
    }
    rates.update(all);
    ++intervals;
  } while (is_news(base, rates.fabric()) && intervals < 20);
  EXPECT_LE(intervals, 3);
  EXPECT_EQ(rates.fabric().nodes[3].in_kbps, kBase);
}

// Behind an uplink of 200 Mbit/s each.
Fabric two_racks() {
  Fabric fabric = even_fabric(8, kBase);
  fabric.racks = {{"left", 200'000, 200'000}, {"right", 200'000, 200'000}};
  for (int i = 0; i < 8; ++i) fabric.nodes[i].rack = i / 4;
  return fabric;
}

// An uplink of half the rate that a file tells: full all the time, not always seen to be the limit.
TEST(LiveRates, ALinkThatNeverCarriedMoreThanItHasIsNotSoonBelievedTo) {
  const Fabric base = two_racks();
  LiveRates rates(base, false);
  std::vector<PassiveReport> all(8, report(0, 0, 300'000));
  for (int e = 0; e < 12; ++e) {
    const bool is_limit = e % 3 < 2;
    for (int i = 0; i < 4; ++i) all[i].far = {is_limit ? 25'000 : 0, 30'000, is_limit ? 1500 : 0};
    rates.update(all);
    if (e > 0) {
      EXPECT_NEAR(static_cast<double>(rates.fabric().racks[0].up_kbps), 100'000, 20'000) << e;
    }
  }
}

TEST(LiveRates, OneOddIntervalChangesNothing) {
  LiveRates rates(even_fabric(8, kBase), false);
  std::vector<PassiveReport> all(8, report(395'000, 0, 395'000));
  rates.update(all);
  all[5].out = {30'000, 395'000, 600};  // for 30 % of the time, next to far more: no limit
  for (int e = 0; e < 3; ++e) rates.update(all);
  EXPECT_EQ(rates.fabric().nodes[5].out_kbps, kBase);
  all[5].out = {150'000, 160'000, 600};
  rates.update(all);
  EXPECT_EQ(rates.fabric().nodes[5].out_kbps, kBase);
  all[5].out.limit_kbps = 155'000;  // and again: now it is believed
  rates.update(all);
  EXPECT_LT(rates.fabric().nodes[5].out_kbps, 170'000);
}

// As on real links of 100 Mbit/s that two communicators and a ring of NET share.
TEST(LiveRates, RatesThatAreRoughChangeNothingUntilTheyAreFarOff) {
  LiveRates rates(even_fabric(8, kBase), false);
  std::vector<PassiveReport> all(8, report(395'000, 0, 395'000));
  for (PassiveReport& r : all) r.is_rough = true;
  all[2] = report(640'000, 0, 640'000);
  all[5] = report(240'000, 0, 240'000);
  all[2].is_rough = all[5].is_rough = true;
  for (int e = 0; e < 5; ++e) rates.update(all);
  for (const NodeLink& node : rates.fabric().nodes) EXPECT_EQ(node.out_kbps, kBase);
  all[5] = report(100'000, 0, 100'000);
  all[5].is_rough = true;
  for (int e = 0; e < 2; ++e) rates.update(all);
  EXPECT_NEAR(static_cast<double>(rates.fabric().nodes[5].out_kbps), 100'000, 8'000);
  // Without other traffic rates are what they are.
  all[5] = report(160'000, 0, 160'000);
  for (int e = 0; e < 3; ++e) rates.update(all);
  EXPECT_NEAR(static_cast<double>(rates.fabric().nodes[5].out_kbps), 160'000, 12'000);
}

TEST(LiveRates, NominalSpeedsOnlyCountAsRatios) {
  // Cards of 10 Gbit/s behind links of 400 Mbit/s, one of them shared with somebody.
  LiveRates rates(even_fabric(8, 10'000'000), true);
  std::mt19937_64 random(6);
  for (int e = 0; e < 4; ++e) {
    std::vector<PassiveReport> all = interval(100'000, 390'000, 0.03, &random);
    rates.update(all);
  }
  const Fabric live = rates.fabric();
  EXPECT_NEAR(static_cast<double>(live.nodes[3].out_kbps), 100'000, 8'000);
  for (int i = 0; i < 8; ++i) {
    if (i == 3) continue;
    EXPECT_NEAR(static_cast<double>(live.nodes[i].out_kbps), 390'000, 30'000) << i;
  }
}

TEST(LiveRates, AnUplinkHasWhatItsNodesSendTogether) {
  const Fabric base = two_racks();
  LiveRates rates(base, false);
  std::vector<PassiveReport> all(8, report(0, 0, 300'000));
  for (int e = 0; e < 2; ++e) {
    for (int i = 0; i < 8; ++i) all[i].far = {i < 4 ? 25'000 : 51'000, 60'000, 1500};
    rates.update(all);
  }
  Fabric live = rates.fabric();
  EXPECT_NEAR(static_cast<double>(live.racks[0].up_kbps), 100'000, 5'000);
  EXPECT_EQ(live.racks[1].up_kbps, 200'000);
  EXPECT_EQ(live.nodes[0].out_kbps, kBase);
  EXPECT_EQ(describe_change(base, live), "rack 0 (left) now sends 100 Mbit/s, was 200");
  for (int i = 0; i < 4; ++i) all[i].far = {50'000, 60'000, 1500};
  for (int e = 0; e < 2; ++e) rates.update(all);
  EXPECT_EQ(rates.fabric().racks[0].up_kbps, 200'000);
}

// A ring leaves a rack at one node, which then has no near peer to send to. The others' few bytes
// are messages.
TEST(LiveRates, AnUplinkHasWhatItsOnlySenderSends) {
  Fabric base = even_fabric(8, kBase);
  base.racks = {{"a", 800'000, 800'000}, {"b", 800'000, 800'000}};
  for (int n = 0; n < 8; ++n) base.nodes[n].rack = n / 4;
  const auto interval = [](std::int64_t far_kbps) {
    std::vector<PassiveReport> all(8);
    for (PassiveReport& r : all) {
      r.active_ms = 4000;
      r.far = {0, 100, 0};
    }
    for (const int last : {3, 7}) all[last].far = {far_kbps, far_kbps, 3900};
    return all;
  };
  LiveRates rates(base, false);
  rates.update(interval(395'000));  // all that the node can send
  EXPECT_EQ(rates.fabric().racks[0].up_kbps, 800'000);
  rates.update(interval(200'000));
  EXPECT_NEAR(static_cast<double>(rates.fabric().racks[0].up_kbps), 200'000, 20'000);
}

TEST(LiveRates, AnIdleJobLearnsNothing) {
  const Fabric base = even_fabric(8, kBase);
  LiveRates rates(base, false);
  for (int e = 0; e < 10; ++e) rates.update(std::vector<PassiveReport>(8));
  EXPECT_FALSE(is_news(base, rates.fabric()));
}

}  // namespace
}  // namespace riffle::probe::passive_rates_test
