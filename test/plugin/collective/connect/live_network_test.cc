// When the network is probed, and how its nodes are named then, whatever their host names.
#include "plugin/collective/connect/live_network.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "plugin/collective/connect/network_decision.h"
#include "plugin/version.h"
#include "test/kept_log.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::live_network_test {
namespace {

struct Node {
  std::string host, machine, address, name = {};  // name: RIFFLE_NODE_NAME
};

std::vector<NodeReport> reports_of(const std::vector<Node>& nodes) {
  std::vector<NodeReport> all(nodes.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].rank = static_cast<int>(i);
    all[i].host = nodes[i].host;
    all[i].version = kVersion;
    all[i].rate_kbps = 1'000'000;
    all[i].share.machine = nodes[i].machine;
    if (!nodes[i].name.empty()) all[i].aliases.push_back(nodes[i].name);
    all[i].aliases.push_back(nodes[i].host);
    all[i].aliases.push_back(nodes[i].address);
  }
  return all;
}

// Two racks of two, with rates by which nodes can be recognized: 1, 2, 3 and 4 Gbit/s.
ProbeOutcome outcome() {
  ProbeOutcome found;
  for (int i = 1; i <= 4; ++i) {
    found.findings.rates.out.push_back({i * 1e6, 1, true});
    found.findings.rates.in.push_back({i * 1e6, 1, true});
  }
  found.findings.racks.rack_of = {0, 1, 0, 1};
  found.findings.racks.count = 2;
  found.findings.racks.uplinks.assign(2, {5e5, 5e5});
  found.findings.racks.confidence = {1, 1};
  found.findings.rounds = 20;
  return found;
}

// Their rates are told apart by more than what is evened out.
std::map<std::string, std::int64_t> rates(const Fabric& fabric) {
  std::map<std::string, std::int64_t> all;
  for (const NodeLink& node : fabric.nodes) all[node.name] = node.out_kbps;
  return all;
}

class LiveNetwork : public ::testing::Test {
 protected:
  void SetUp() override {
    kept_lines.clear();
    device_.addresses.push_back({.interface = "lo", .address = "127.0.0.1"});
    set_logger(keep_line);
  }
  void TearDown() override { set_logger(nullptr); }

  bool is_probed(const std::vector<Node>& nodes) {
    return wants_probe(options_, reports_of(nodes));
  }
  Result<Fabric> fabric_of(const std::vector<NodeReport>& reports) const {
    return fabric_of_probe(outcome(), reports, device_, nullptr);
  }

  Device device_;
  ConnectOptions options_;
};

const std::vector<Node> kEqualNames = {{"localhost", "boot-a", "10.0.0.1"},
                                       {"localhost", "boot-b", "10.0.0.2"},
                                       {"localhost", "boot-c", "10.0.0.3"},
                                       {"localhost", "boot-d", "10.0.0.4"}};

TEST_F(LiveNetwork, MachinesOfEqualHostNamesAreProbed) {
  EXPECT_TRUE(is_probed(kEqualNames));
  // Two containers of one machine, and one of another.
  EXPECT_TRUE(is_probed({{"app", "boot-a", "10.0.0.1"},
                         {"app", "boot-a", "10.0.0.2"},
                         {"app", "boot-b", "10.0.0.1"}}));
}

TEST_F(LiveNetwork, OneMachineIsNot) {
  EXPECT_FALSE(is_probed({{"app", "boot-a", "10.0.0.1"}, {"app", "boot-a", "10.0.0.2"}}));
  EXPECT_FALSE(is_probed({{"app", "", "10.0.0.1"}, {"app", "", "10.0.0.2"}}));
  EXPECT_FALSE(is_probed({{"app", "boot-a", "10.0.0.1"}, {"app", "", "10.0.0.2"}}));
  options_.probe = Wish::kOn;
  EXPECT_TRUE(is_probed({{"app", "boot-a", "10.0.0.1"}, {"app", "boot-a", "10.0.0.2"}}));
}

TEST_F(LiveNetwork, ContainersOfOneMachineWithHostNamesOfTheirOwnAre) {
  EXPECT_TRUE(is_probed({{"pod-0", "boot-a", "10.0.0.1"}, {"pod-1", "boot-a", "10.0.0.2"}}));
}

TEST_F(LiveNetwork, WhatElseLeavesItOut) {
  const auto without = [](void (*change)(ConnectOptions&)) {
    ConnectOptions options;
    options.probe = Wish::kOn;
    change(options);
    return wants_probe(options, reports_of(kEqualNames));
  };
  EXPECT_TRUE(without([](ConnectOptions&) {}));
  EXPECT_FALSE(without([](ConnectOptions& o) { o.probe = Wish::kOff; }));
  EXPECT_FALSE(without([](ConnectOptions& o) { o.collnet = Wish::kOff; }));
  EXPECT_FALSE(without([](ConnectOptions& o) { o.fabric = "racks.toml"; }));
  EXPECT_TRUE(without([](ConnectOptions& o) { o.is_deterministic = true; }));
  options_.is_deterministic = true;
  EXPECT_FALSE(is_probed(kEqualNames));
  options_ = {.probe = Wish::kOn};
  EXPECT_FALSE(is_probed({kEqualNames[0]}));
  std::vector<NodeReport> refused = reports_of(kEqualNames);
  refused[2].problem = "no NIC";
  EXPECT_FALSE(wants_probe(options_, refused));
}

TEST_F(LiveNetwork, OneLineSaysThatAllNodesAreOneMachine) {
  const auto said_of = [&](const std::vector<Node>& nodes) {
    kept_lines.clear();
    probe::KnownRacks known;
    NetworkDecision(options_, device_).look_up(reports_of(nodes), &known);
    return kept_lines;
  };
  const std::vector<Node> one = {{"app", "boot-a", "10.0.0.1"}, {"app", "boot-a", "10.0.0.2"}};
  const std::vector<std::string> said = said_of(one);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("all 2 nodes are one machine (app)"), std::string::npos) << said[0];
  EXPECT_TRUE(said_of(kEqualNames).empty());
  // There are other reasons, too.
  options_.fabric = "racks.toml";
  EXPECT_TRUE(said_of(one).empty());
  options_ = {.is_deterministic = true};
  EXPECT_TRUE(said_of(one).empty());
}

TEST_F(LiveNetwork, NodesOfEqualHostNamesAreFoundAgainInTheFile) {
  const std::vector<NodeReport> reports = reports_of(kEqualNames);
  const Result<Fabric> found = fabric_of(reports);
  ASSERT_TRUE(found) << found.status().message();
  // Another job has them in another order.
  const std::vector<NodeAliases> turned = {reports[2].aliases, reports[0].aliases,
                                           reports[3].aliases, reports[1].aliases};
  const Result<LoadedFabric> read = parse_fabric(to_toml(*found), "found.toml", turned);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_TRUE(read->notes.empty());
  EXPECT_EQ(rates(read->fabric), rates(*found));
  EXPECT_LT(read->fabric.nodes[1].out_kbps, read->fabric.nodes[3].out_kbps);
  EXPECT_LT(read->fabric.nodes[3].out_kbps, read->fabric.nodes[0].out_kbps);
  EXPECT_EQ(read->fabric.nodes[0].rack, read->fabric.nodes[1].rack);
}

TEST_F(LiveNetwork, NodesAreNamedByHostOrElseByWhatIsTheirsAlone) {
  const auto names = [&](const std::vector<Node>& nodes) {
    std::vector<std::string> all;
    const Fabric found = *fabric_of(reports_of(nodes));
    for (const NodeLink& node : found.nodes) all.push_back(node.name);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({{"a", "", "10.0.0.1"},
                   {"b", "", "10.0.0.2", "left"},
                   {"c", "", "10.0.0.3"},
                   {"d", "", "10.0.0.4"}}),
            (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(names({{"app", "", "10.0.0.1"},
                   {"app", "", "10.0.0.2", "left"},
                   {"app", "", "10.0.0.3", "app"},
                   {"d", "", "10.0.0.4"}}),
            (Names{"10.0.0.1", "left", "10.0.0.3", "d"}));
}

TEST_F(LiveNetwork, WhatIsSavedCanBeRead) {
  options_.fabric_save = ::testing::TempDir() + "riffle_live_network.toml";
  std::filesystem::remove(options_.fabric_save);
  std::vector<NodeReport> reports = reports_of(kEqualNames);
  ASSERT_TRUE(probed_network(options_, outcome(), reports, device_, nullptr));
  std::vector<NodeAliases> names;
  for (const NodeReport& r : reports) names.push_back(r.aliases);
  const Result<LoadedFabric> read = load_fabric(options_.fabric_save, names);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->fabric.racks.size(), 2u);

  // Nothing tells two of them apart.
  std::filesystem::remove(options_.fabric_save);
  reports[1].aliases = reports[0].aliases;
  kept_lines.clear();
  ASSERT_TRUE(probed_network(options_, outcome(), reports, device_, nullptr));
  EXPECT_FALSE(std::filesystem::exists(options_.fabric_save));
  ASSERT_EQ(kept_lines.size(), 2u);  // one of what was found
  EXPECT_NE(kept_lines[1].find("is not written"), std::string::npos) << kept_lines[1];
  EXPECT_NE(kept_lines[1].find("RIFFLE_NODE_NAME"), std::string::npos) << kept_lines[1];
}

TEST_F(LiveNetwork, IsRememberedWhereHostNamesAreEqual) {
  std::vector<Node> nodes = kEqualNames;
  for (Node& node : nodes) node.address = "10.99." + node.address.substr(5);  // this test's own
  const std::vector<NodeReport> reports = reports_of(nodes);
  EXPECT_FALSE(remembered_network(options_, reports));
  remember_network(network_text(*fabric_of(reports)));
  const auto known = remembered_network(options_, {reports[3], reports[1]});
  ASSERT_TRUE(known);
  EXPECT_GT(known->nodes[0].out_kbps, known->nodes[1].out_kbps);
  std::vector<NodeReport> alike = {reports[3], reports[1]};
  alike[0].aliases = alike[1].aliases;
  EXPECT_FALSE(remembered_network(options_, alike));
}

TEST_F(LiveNetwork, IsKnownByItsPairsOnlyToWhoProbedThem) {
  std::vector<Node> nodes = kEqualNames;
  for (Node& node : nodes) node.address = "10.98." + node.address.substr(5);  // this test's own
  const std::vector<NodeReport> reports = reports_of(nodes);
  const auto has_seen_pairs = [&](const ProbeOutcome& found) {
    NetworkDecision decision(options_, device_);
    probe::KnownRacks known;
    if (decision.look_up(reports, &known)) decision.probed(reports, found);
    EXPECT_EQ(decision.decide(reports).problem, "");
    EXPECT_FALSE(decision.basis().is_nominal);
    return decision.basis().has_seen_pairs;
  };
  ProbeOutcome cut_short = outcome();
  cut_short.trouble = "a node did not answer";
  options_.probe = Wish::kOn;  // remembers nothing
  EXPECT_FALSE(has_seen_pairs(cut_short));
  EXPECT_TRUE(has_seen_pairs(outcome()));
  options_.probe = Wish::kAuto;  // another communicator's
  EXPECT_FALSE(has_seen_pairs(outcome()));
}

}  // namespace
}  // namespace riffle::live_network_test
