// Rates of uplinks from rounds: what a link carried while it was full, not what a token bucket
// lent.
#include <gtest/gtest.h>

#include "topology/probe/rack_model.h"

namespace riffle::rack_model_test {
namespace {

constexpr int kRacks = 3, kPerRack = 3, kNodes = kRacks * kPerRack;
constexpr std::int64_t kNode = 100'000;  // kbit/s
const std::vector<int> kRackOf{0, 0, 0, 1, 1, 1, 2, 2, 2};

// All nodes of a rack send to the next one; together they carry as much as `carried` says.
probe::Observed round(const std::vector<std::int64_t>& carried) {
  probe::Observed o;
  for (int n = 0; n < kNodes; ++n) {
    const std::int64_t part = carried[static_cast<std::size_t>(n / kPerRack)] / kPerRack;
    o.round.flows.push_back({n, (n + kPerRack) % kNodes});
    o.samples.push_back({part, part, true, 200, -1});
  }
  return o;
}

std::vector<probe::Uplink> uplinks(const std::vector<probe::Observed>& all) {
  probe::NodeRates rates;
  rates.out.assign(kNodes, {static_cast<double>(kNode), 1, false});
  rates.in = rates.out;
  return probe::RackModel(kNodes, rates, all).uplinks(kRackOf, kRacks);
}

TEST(RackModel, AFewRoundsThatATokenBucketHelpedDoNotMakeAnUplinkFaster) {
  std::vector<probe::Observed> all(10, round({150'000, 250'000, 250'000}));
  all.insert(all.end(), 2, round({182'000, 250'000, 250'000}));
  const auto links = uplinks(all);
  EXPECT_NEAR(links[0].up_kbps, 150'000, 4'000);
  EXPECT_NEAR(links[1].down_kbps, 150'000, 4'000);
  EXPECT_NEAR(links[1].up_kbps, 250'000, 4'000);
}

TEST(RackModel, RoundsThatAnotherUplinkLimitedDoNotMakeOneSlower) {
  // Rack 1 sends 250 where rack 2 can take it; most rounds are held to 150 on the way into rack 2.
  std::vector<probe::Observed> all(3, round({90'000, 250'000, 90'000}));
  probe::Observed back;  // rack 1 sends to rack 0, which takes 150
  for (int n = 3; n < 6; ++n) {
    back.round.flows.push_back({n, n - 3});
    back.samples.push_back({50'000, 50'000, true, 200, -1});
  }
  all.insert(all.end(), 9, back);
  const auto links = uplinks(all);
  EXPECT_NEAR(links[1].up_kbps, 250'000, 4'000);
  EXPECT_NEAR(links[0].down_kbps, 150'000, 4'000);
}

}  // namespace
}  // namespace riffle::rack_model_test
