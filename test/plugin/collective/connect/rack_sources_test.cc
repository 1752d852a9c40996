// Racks that node 0 knows before anything is measured, and the lines that it says about them.
#include "plugin/collective/connect/rack_sources.h"

#include <gtest/gtest.h>

#include <fstream>

#include "plugin/collective/connect/network_decision.h"
#include "plugin/entry/options.h"
#include "plugin/version.h"
#include "test/kept_log.h"
#include "test/plugin/entry/knobs.h"

namespace riffle::rack_sources_test {
namespace {

class RackSources : public ::testing::Test {
 protected:
  void SetUp() override {
    kept_lines.clear();
    set_logger(keep_line);
  }
  void TearDown() override { set_logger(nullptr); }

  static std::vector<NodeReport> nodes(const std::vector<std::string>& racks) {
    std::vector<NodeReport> all(racks.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].rank = static_cast<int>(i);
      all[i].host = "h" + std::to_string(i);
      all[i].aliases = {all[i].host};
      all[i].version = kVersion;
      all[i].rate_kbps = 1'000'000;
      all[i].rack = racks[i];
    }
    return all;
  }
  static ConnectOptions options(Knobs knobs) {
    knobs.emplace_back("RIFFLE_COLLNET", "on");
    return options_from(config_with(knobs)).collective.connect;
  }
  static std::optional<Racks> look_up(const std::vector<NodeReport>& reports,
                                      probe::KnownRacks* known, const char* file = "none") {
    return look_up_racks(options({{"RIFFLE_TOPOLOGY", file}}), reports, known);
  }
  static std::string topology_file() {
    const std::string path = ::testing::TempDir() + "riffle_rack_sources.conf";
    std::ofstream(path) << "SwitchName=s0 Nodes=h[0-1]\nSwitchName=s1 Nodes=h[2-3]\n";
    return path;
  }
};

TEST_F(RackSources, NamesAreRacksWithoutProbingAndAHintWithIt) {
  probe::KnownRacks known;
  const auto racks = look_up(nodes({"B", "A", "B", "A"}), &known);
  ASSERT_TRUE(racks);
  EXPECT_EQ(racks->rack_of, (std::vector<int>{0, 1, 0, 1}));
  ASSERT_EQ(racks->racks.size(), 2u);
  EXPECT_EQ(racks->racks[0].name, "B");
  EXPECT_EQ(racks->racks[1].name, "A");
  EXPECT_TRUE(known.rack_of.empty());
  ASSERT_EQ(known.hints.size(), 1u);
  EXPECT_EQ(known.hints[0].source, "RIFFLE_RACK");
  EXPECT_EQ(known.hints[0].rack_of, racks->rack_of);
  EXPECT_TRUE(kept_lines.empty());
}

TEST_F(RackSources, SubnetsAreAHintAndNoMore) {
  std::vector<NodeReport> all = nodes({"", "", "", ""});
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].network = i < 2 ? "10.0.1.0/24" : "10.0.2.0/24";
  probe::KnownRacks known;
  EXPECT_FALSE(look_up(all, &known));
  ASSERT_EQ(known.hints.size(), 1u);
  EXPECT_EQ(known.hints[0].source, "subnets");
  EXPECT_LT(known.hints[0].nats_per_node, probe::kLabelNats);
}

TEST_F(RackSources, NamesThatSomeNodesLackAreIgnoredWithALine) {
  probe::KnownRacks known;
  EXPECT_FALSE(look_up(nodes({"A", "A", "", "B"}), &known));
  EXPECT_TRUE(known.hints.empty());
  ASSERT_EQ(kept_lines.size(), 1u);
  EXPECT_NE(kept_lines[0].find("RIFFLE_RACK is not set on all nodes"), std::string::npos)
      << kept_lines[0];
  EXPECT_NE(kept_lines[0].find("h2"), std::string::npos) << kept_lines[0];
}

TEST_F(RackSources, ATopologyFileComesFirstAndAContradictionIsALine) {
  const std::string file = topology_file();
  for (const auto& [racks, contradicts] :
       {std::pair(std::vector<std::string>{"A", "A", "B", "B"}, false),
        std::pair(std::vector<std::string>{"A", "B", "A", "B"}, true)}) {
    kept_lines.clear();
    probe::KnownRacks known;
    const auto found = look_up(nodes(racks), &known, file.c_str());
    ASSERT_TRUE(found);
    EXPECT_EQ(known.rack_of, (std::vector<int>{0, 0, 1, 1}));
    EXPECT_TRUE(known.hints.empty());
    EXPECT_EQ(kept_lines.size(), contradicts ? 1u : 0u);
    if (kept_lines.empty()) continue;
    EXPECT_NE(kept_lines[0].find("RIFFLE_RACK contradicts the topology file"), std::string::npos);
  }
}

TEST_F(RackSources, AnOverruledHintIsOneLineWithItsNodes) {
  probe::Racks found;
  log_overruled(found, nodes({"A", "A"}));
  EXPECT_TRUE(kept_lines.empty());
  found.overruled.push_back({"RIFFLE_RACK", {1, 3}});
  log_overruled(found, nodes({"A", "A", "B", "B"}));
  ASSERT_EQ(kept_lines.size(), 1u);
  EXPECT_NE(kept_lines[0].find("RIFFLE_RACK"), std::string::npos);
  EXPECT_NE(kept_lines[0].find("h1, h3"), std::string::npos);
}

TEST_F(RackSources, WithoutProbingAPlanIsMadeForTheRacksNamed) {
  const ConnectOptions off = options({{"RIFFLE_PROBE", "off"}, {"RIFFLE_TOPOLOGY", "none"}});
  std::vector<NodeReport> all = nodes({"A", "B", "A", "B"});
  for (NodeReport& r : all) r.knobs = off.knobs;
  const Device device;
  NetworkDecision decision(off, device);
  probe::KnownRacks known;
  EXPECT_FALSE(decision.look_up(all, &known)) << "probing is off";
  const Verdict verdict = decision.decide(all);
  EXPECT_EQ(verdict.problem, "");
  EXPECT_FALSE(verdict.plans.empty());
  const Fabric& fabric = decision.basis().fabric;
  ASSERT_EQ(fabric.racks.size(), 2u);
  EXPECT_EQ(fabric.racks[1].name, "B");
  for (int n = 0; n < 4; ++n) EXPECT_EQ(fabric.nodes[n].rack, n % 2);
}

TEST(NodeReports, ArriveAsTheyWereSent) {
  NodeReport r;
  r.rank = 3;
  r.rack = std::string(64, 'x');
  r.network = "10.1.2.0/24";
  r.knows_lengths = true;
  const auto back = decode_reports(encode(std::vector{r, NodeReport{}}));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].rank, 3);
  EXPECT_EQ((*back)[0].rack, r.rack);
  EXPECT_EQ((*back)[0].network, r.network);
  EXPECT_TRUE((*back)[0].knows_lengths);
  EXPECT_EQ((*back)[1].rack, "");
}

TEST(NodeReports, MangledOnesAreRefused) {
  NodeReport r;
  r.rack = std::string(65, 'x');
  const auto too_long = decode_reports(encode(std::vector{r}));
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.status().message().find("mangled report"), std::string::npos);
  r.rack = "a";
  auto bytes = encode(std::vector{r});
  while (!bytes.empty()) {
    bytes.pop_back();
    EXPECT_FALSE(decode_reports(bytes)) << bytes.size();
  }
}

}  // namespace
}  // namespace riffle::rack_sources_test
