#include "lab/cluster/profile_file.h"

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
      {"about = \"x\"\nnodes = 2\nout_mbps = 5", "in_mbps must be a whole number from 1 to"},
      {"about = \"x\"\nnodes = 2\nrate_mbps = 5\nout_mbps = 5\nin_mbps = 5",
       "rate_mbps excludes out_mbps and in_mbps"},
      {"about = \"x\"\nnodes = 2\nnics = 5", "nics must be a whole number from 1 to 4"},
      {"about = \"x\"\nnodes = 2\nhost_names = \"none\"",
       "host_names must be one of \"own\", \"equal\""},
      {"about = \"x\"\nnodes = 2\npacket_filter = 1", "packet_filter must be true or false"},
      {"about = \"x\"\nnodes = 2\nshaper = \"red\"",
       "shaper must be one of \"tbf\", \"htb\", \"policer\""},
      {"about = \"x\"\nnodes = 2\nqueue_ms = 101", "queue_ms must be a whole number from 1 to 100"},
      {"about = \"x\"\nnodes = 2\nqueue_bytes = 1", "queue_bytes must be a whole number from 2000"},
      {"about = \"x\"\nnodes = 2\nqueue_ms = 1\nqueue_bytes = 5000", "queue_ms excludes"},
      {"about = \"x\"\nnodes = 2\nshaper = \"policer\"\nqueue_ms = 1", "a policer has no queue"},
      {"about = \"x\"\nnodes = 2\nburst_bytes = 1", "burst_bytes must be a whole number from 2000"},
      {"about = \"x\"\nnodes = 2\ngso_max_bytes = 65537",
       "gso_max_bytes must be a whole number from 2000 to 65536"},
      {"about = \"x\"\nnodes = 2\n[[exception]]\nnodes = [1]",
       "needs a rate_mbps or a cpu_percent"},
      {"about = \"x\"\nnodes = 2\n[[exception]]\nnodes = [1]\ncpu_percent = 101",
       "cpu_percent must be a whole number from 5 to 100"},
      {"about = \"x\"\nnodes = 2\n[[pod]]\nname = \"p\"\nracks = [\"a\"]",
       "there is no rack \"a\""},
      {"about = \"x\"\nnodes = 2\n[[rack]]\nname = \"a\"\nnodes = [0, 1]\n"
       "[[pod]]\nname = \"p\"\nracks = [\"a\", \"a\"]",
       "rack \"a\" is in two pods"},
      {"about = \"x\"\nnodes = 2\nrate_mbps = 9\n[[flow]]\nfrom = 1\nto = 1\nrate_mbps = 1",
       "from and to must differ"},
      {"about = \"x\"\nnodes = 2\nrate_mbps = 9\n[[flow]]\nfrom = 0\nto = 1\nrate_mbps = 9",
       "rate_mbps must be a whole number from 1 to 8"},
      {"about = \"x\"\nnodes = 2\n[[flow]]\nfrom = 0\nto = 1\nrate_mbps = 9\non_ms = 1",
       "off_ms must be a whole number from 1 to 600000"},
      {"about = \"x\"\nnodes = 2\nnics = 2\nrate_mbps = 9\n[neighbour]\nnode = 1\n"
       "guaranteed_mbps = 1",
       "needs nics = 1"},
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

constexpr char kEverything[] = R"(about = "every key"
nodes = 6
out_mbps = 100
in_mbps = 80
nics = 2
host_names = "equal"
packet_filter = true
shaper = "htb"
queue_ms = 20
burst_bytes = 100000
gso_max_bytes = 65536

[[exception]]
nodes = [3]
rate_mbps = 50

[[exception]]
nodes = [0, 1]
cpu_percent = 30

[[rack]]
name = "a"
nodes = [0, 1]
uplink_mbps = 150

[[rack]]
name = "b"
nodes = [2, 3]

[[rack]]
name = "c"
nodes = [4, 5]
up_mbps = 60
down_mbps = 40

[[pod]]
name = "ab"
racks = ["a", "b"]
uplink_mbps = 90

[[flow]]
from = 0
to = 5
rate_mbps = 20
on_ms = 300
off_ms = 100

[fault]
node = 1
after_ms = 5
kinds = ["kill", "stop"]
)";

TEST(ProfileTest, EveryKeyIsReadAndWritten) {
  const auto p = parse_profile(kEverything, "all.toml");
  ASSERT_TRUE(p) << p.status().message();
  EXPECT_EQ(to_toml(*p), kEverything);
  EXPECT_EQ(p->rates[0], (Rates{100'000, 80'000}));
  EXPECT_EQ(p->rates[3], (Rates{50'000, 50'000}));
  EXPECT_EQ(p->cpu_percent, (std::vector<int>{30, 30, 0, 0, 0, 0}));
  EXPECT_EQ(p->racks[1].pod, 0);
  EXPECT_EQ(p->racks[2].pod, -1);
  EXPECT_EQ(p->racks[2].uplink, (Rates{60'000, 40'000}));
  EXPECT_EQ(p->flows[0].mean_kbps(), 15'000);
}

// The uplink of rack a limits its nodes, so the pod's is divided; flows are gone from what they
// pass; a node has the rate of both its NICs.
TEST(ProfileTest, TheFabricSaysWhatIsLeft) {
  const auto p = parse_profile(kEverything, "all.toml");
  ASSERT_TRUE(p) << p.status().message();
  const Fabric f = fabric_of(*p);
  ASSERT_TRUE(validate(f));
  EXPECT_EQ(f.nodes[0].name, "10.77.0.1");  // host names are equal
  EXPECT_EQ(f.nodes[0].out_kbps, 185'000);
  EXPECT_EQ(f.nodes[0].in_kbps, 160'000);
  EXPECT_EQ(f.nodes[5].in_kbps, 145'000);
  ASSERT_EQ(f.racks.size(), 3u);
  EXPECT_EQ(f.racks[0].name, "c");
  EXPECT_EQ(f.racks[0].up_kbps, 60'000);
  EXPECT_EQ(f.racks[0].down_kbps, 25'000);
  // Out of the pod 75 Mbit/s are left, into it 90.
  EXPECT_NEAR(f.racks[1].up_kbps + f.racks[2].up_kbps, 75'000, 1);
  EXPECT_NEAR(f.racks[1].down_kbps + f.racks[2].down_kbps, 90'000, 1);
}

Profile two_pods(Rates racks, Rates pods) {
  Profile p = even_profile(8, 100'000);
  p.racks = {{"a", racks, 0}, {"b", racks, 0}, {"c", racks, 1}, {"d", racks, 1}};
  p.rack_of = {0, 1, 2, 3, 0, 1, 2, 3};
  p.pods = {{"left", pods}, {"right", pods}};
  return p;
}

TEST(ProfileTest, TheTierThatLimitsIsTheFabricsRacks) {
  const Fabric narrow_pods = fabric_of(two_pods({200'000, 200'000}, {150'000, 100'000}));
  ASSERT_EQ(narrow_pods.racks.size(), 2u);
  EXPECT_EQ(narrow_pods.racks[1].name, "right");
  EXPECT_EQ(narrow_pods.racks[1].up_kbps, 150'000);
  EXPECT_EQ(narrow_pods.racks[1].down_kbps, 100'000);
  EXPECT_EQ(narrow_pods.nodes[5].rack, 0);
  EXPECT_EQ(narrow_pods.nodes[6].rack, 1);
  const Fabric narrow_racks = fabric_of(two_pods({100'000, 50'000}, {200'000, 100'000}));
  ASSERT_EQ(narrow_racks.racks.size(), 4u);
  EXPECT_EQ(narrow_racks.racks[3].up_kbps, 100'000);
  EXPECT_EQ(narrow_racks.racks[3].down_kbps, 50'000);
  EXPECT_EQ(narrow_racks.nodes[6].rack, 2);
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
  EXPECT_EQ(smaller->rates, std::vector<Rates>(mixed->rates.begin(), mixed->rates.begin() + 6));
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
