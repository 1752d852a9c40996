#include "lab/cluster/profile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace riffle::cluster::profile_test {
namespace {

TEST(ProfileTest, EveryShippedProfileIsRightAndPlannable) {
  const auto names = profile_names(PROFILES);
  ASSERT_GE(names.size(), 9u);
  for (const std::string& name : names) {
    const auto profile = load_profile(name, PROFILES);
    ASSERT_TRUE(profile) << profile.status().message();
    EXPECT_EQ(profile->name, name);
    if (!profile->shaped()) continue;
    EXPECT_TRUE(validate(fabric_of(profile.value()))) << name;
  }
}

TEST(ProfileTest, RacksInterleaveRanks) {
  const auto profile = load_profile("racks8", PROFILES);
  ASSERT_TRUE(profile) << profile.status().message();
  EXPECT_EQ(profile->rack_of, (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1}));
  const Fabric fabric = fabric_of(profile.value());
  EXPECT_EQ(fabric.racks[1].up_kbps, 200'000);
  EXPECT_EQ(fabric.nodes[5].in_kbps, 400'000);
}

TEST(ProfileTest, ANeighbourTakesItsPartOfOneLink) {
  const auto profile = load_profile("contention8", PROFILES);
  ASSERT_TRUE(profile) << profile.status().message();
  const Fabric calm = fabric_of(*profile), contended = contended_fabric_of(*profile);
  for (int n = 0; n < profile->size(); ++n) {
    EXPECT_EQ(calm.nodes[n].out_kbps, 400'000);
    EXPECT_EQ(contended.nodes[n].out_kbps, n == profile->neighbour.node ? 100'000 : 400'000);
    EXPECT_EQ(contended.nodes[n].in_kbps, contended.nodes[n].out_kbps);
  }
}

struct Wrong {
  const char* text;
  const char* named;  // what the message must name
};

TEST(ProfileTest, FaultsNameFileAndCulprit) {
  const Wrong cases[] = {
      {"nodes = 4", "about"},
      {"about = \"x\"\nnodes = 1", "nodes must be a whole number from 2 to 200"},
      {"about = \"x\"\nnodes = 4\nrate_mpbs = 4", "unknown key \"rate_mpbs\""},
      {"about = \"x\"\nnodes = 4\n[[exception]]\nnodes = [4]\nrate_mbps = 1",
       "node 4 does not exist"},
      {"about = \"x\"\nnodes = 2\n[[rack]]\nname = \"a\"\nnodes = [0]", "node 1 is in no rack"},
      {"about = \"x\"\nnodes = 2\n[[rack]]\nname = \"a\"\nnodes = [0, 1, 1]",
       "node 1 is in two racks"},
      {"about = \"x\"\nnodes = 2\n[fault]\nnode = 1\nafter_ms = 1\nkinds = [\"melt\"]",
       "kinds accepts"},
      {"about = \"x\"\nnodes = 2\nrate_mbps = 100\n[neighbour]\nnode = 1\nguaranteed_mbps = 100",
       "guaranteed_mbps must be a whole number from 1 to 99"},
      {"about = \"x\"\nnodes = 2\n[neighbour]\nnode = 1\nguaranteed_mbps = 1",
       "its node needs a rate_mbps"},
      {"about = ", "not TOML"},
  };
  for (const Wrong& c : cases) {
    const auto profile = parse_profile(c.text, "some/file.toml");
    ASSERT_FALSE(profile) << c.text;
    EXPECT_NE(profile.status().message().find("some/file.toml"), std::string::npos)
        << profile.status().message();
    EXPECT_NE(profile.status().message().find(c.named), std::string::npos)
        << profile.status().message();
  }
}

TEST(ProfileTest, AnotherSizeRepeatsTheNodes) {
  const auto racks = load_profile("racks8", PROFILES);
  ASSERT_TRUE(racks);
  const auto larger = resized(*racks, 14);
  ASSERT_TRUE(larger) << larger.status().message();
  EXPECT_EQ(larger->size(), 14);
  EXPECT_EQ(larger->name, "racks8-14");
  EXPECT_EQ(larger->rack_of[13], racks->rack_of[5]);
  EXPECT_EQ(larger->racks.size(), 2u);
  const auto mixed = load_profile("mixed16", PROFILES);
  const auto smaller = resized(*mixed, 6);
  ASSERT_TRUE(smaller) << smaller.status().message();
  EXPECT_EQ(smaller->rate_kbps,
            std::vector<std::int64_t>(mixed->rate_kbps.begin(), mixed->rate_kbps.begin() + 6));
  const auto loss = load_profile("loss8", PROFILES);
  ASSERT_FALSE(resized(*loss, 5));  // its fault is node 5's
  EXPECT_NE(resized(*loss, 5).status().message().find("6 to 200"), std::string::npos);
}

TEST(ProfileTest, UnknownNameListsTheKnownOnes) {
  const auto profile = load_profile("uniform9", PROFILES);
  ASSERT_FALSE(profile);
  EXPECT_NE(profile.status().message().find("uniform8"), std::string::npos)
      << profile.status().message();
}

}  // namespace
}  // namespace riffle::cluster::profile_test
