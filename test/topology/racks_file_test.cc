// topology/fabric: racks from Slurm's and topograph's files. The topograph texts have the form that
// its Slurm, partition and graph engines write.
#include "topology/fabric/racks_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "topology/fabric/hostlist.h"

namespace riffle::racks_file_test {
namespace {

const char kTree[] = R"(# two levels
SwitchName=core Switches=leaf[1-2],edge LinkSpeed=800
switchname=leaf1  NODES=h[0-3]
SwitchName = leaf2 Nodes="h[4-5],h07" # a comment
SwitchName=edge Nodes=h6,\
login[1-2]x
)";

const char kBlocks[] = R"(# block001=nvl-1-1
BlockName=block001 Nodes=h[0-3]
# block002=nvl-1-2
BlockName=block002 Nodes=h[4-7]
BlockName=block003
BlockSizes=4,8
)";

const char kYaml[] = R"(- topology: other
  cluster_default: false
  block:
    block_sizes:
        - 2
    blocks:
        - block: block1
          nodes: h[0-9]
- topology: topo1
  cluster_default: true
  tree:
    switches:
        - switch: S1
          children: S[2-3]
        - switch: S2
          nodes: h[0-3]
        - switch: S3
          nodes: h[4,5-7]
- topology: flat1
  cluster_default: false
  flat: true
)";

const char kJson[] = R"({"instances": [
  {"id": "h0", "network_layers": ["leaf-a", "spine"], "labels": {"a.b/domain": "nvl\u002d1"}},
  {"id": "h1", "network_layers": ["leaf-b", "spine"]},
	{"id": "h2", "network_layers": ["leaf-a"], "labels": {}}, {"id": "h3", "network_layers": []}]}
)";

std::vector<NodeAliases> named(const std::vector<std::string>& names) {
  std::vector<NodeAliases> all;
  for (const std::string& name : names) all.push_back({name});
  return all;
}

void expect_racks(const std::string& text, const std::vector<std::string>& nodes,
                  const std::vector<std::string>& names, const std::vector<int>& rack_of) {
  const auto racks = parse_racks(text, "t.conf", named(nodes));
  ASSERT_TRUE(racks.is_ok()) << racks.status().message();
  std::vector<std::string> found;
  for (const RackLink& rack : racks->racks) {
    found.push_back(rack.name);
    EXPECT_EQ(rack.up_kbps, 0);
    EXPECT_EQ(rack.down_kbps, 0);
  }
  EXPECT_EQ(found, names);
  EXPECT_EQ(racks->rack_of, rack_of);
  EXPECT_EQ(racks->source, "topology file t.conf");
}

void expect_error(const std::string& text, std::initializer_list<const char*> parts,
                  const std::vector<std::string>& nodes = {"h0"}) {
  const auto racks = parse_racks(text, "t.conf", named(nodes));
  ASSERT_FALSE(racks.is_ok()) << text;
  EXPECT_NE(racks.status().message().find("topology file t.conf"), std::string::npos);
  for (const char* part : parts) {
    EXPECT_NE(racks.status().message().find(part), std::string::npos)
        << part << " not in: " << racks.status().message();
  }
}

std::vector<std::string> expanded(const std::string& text) {
  std::vector<std::string> names;
  const Status status = expand_hostlist(text, names);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return names;
}

TEST(Hostlist, ExpandsRangesListsAndSeveralBrackets) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(expanded("a,b"), (Names{"a", "b"}));
  EXPECT_EQ(expanded("n[8-10]"), (Names{"n8", "n9", "n10"}));
  EXPECT_EQ(expanded("n[08-10]"), (Names{"n08", "n09", "n10"}));
  EXPECT_EQ(expanded("n[1,3-4]-ib,x"), (Names{"n1-ib", "n3-ib", "n4-ib", "x"}));
  EXPECT_EQ(expanded("r[1-2]n[0-1]"), (Names{"r1n0", "r1n1", "r2n0", "r2n1"}));
  EXPECT_EQ(expanded("switch.2.[1-2]"), (Names{"switch.2.1", "switch.2.2"}));
}

TEST(Hostlist, RefusesWhatIsMalformedOrTooLong) {
  for (const char* bad : {"", "a,", "n[1-2", "n1]", "n[]", "n[2-1]", "n[a-b]", "n[1--2]",
                          "n[0-999999999]", "n[0-9999]m[0-9999]", "n[1-12345678901]", "a b"}) {
    std::vector<std::string> names;
    const Status status = expand_hostlist(bad, names);
    ASSERT_FALSE(status.is_ok()) << bad;
    EXPECT_NE(status.message().find("accepted are names like"), std::string::npos);
  }
  std::vector<std::string> names;
  EXPECT_FALSE(expand_hostlist(std::string(300, 'x'), names).is_ok());
}

TEST(RacksFile, LeafSwitchesAreRacks) {
  expect_racks(kTree, {"h4", "h0", "h6", "h07", "h3"}, {"leaf2", "leaf1", "edge"}, {0, 1, 2, 0, 1});
  expect_racks(kTree, {"login2x"}, {"edge"}, {0});
}

TEST(RacksFile, BlocksAreRacks) {
  expect_racks(kBlocks, {"h0", "h7", "h1"}, {"block001", "block002"}, {0, 1, 0});
}

TEST(RacksFile, YamlOfSlurmAndTopographTheDefaultFirst) {
  expect_racks(kYaml, {"h0", "h1", "h6"}, {"S2", "S3"}, {0, 0, 1});
  expect_racks(kYaml, {"h0", "h9"}, {"block1"}, {0, 0});  // only the other topology knows h9
  std::string flat_list = "---\n- topology: t\n  tree: {switches: [{switch: a, nodes: 'h0'}]}\n";
  expect_racks(flat_list, {"h0"}, {"a"}, {0});
  flat_list = "- topology: t\n  block:\n    blocks:\n    - block: b\n      nodes: h0\n";
  expect_racks(flat_list, {"h0"}, {"b"}, {0});
}

TEST(RacksFile, JsonOfTopographsGraphEngine) {
  expect_racks(kJson, {"h0", "h1", "h2"}, {"leaf-a", "leaf-b"}, {0, 1, 0});
  expect_error(kJson, {"h3 is not in it (1 of 1 nodes"}, {"h3"});
}

TEST(RacksFile, FindsANodeUnderAnyAliasAndWithoutItsDomain) {
  const std::vector<NodeAliases> nodes = {{"unknown", "h0.cluster.example", "10.0.0.1"}, {"h07"}};
  const auto racks = parse_racks(kTree, "t.conf", nodes);
  ASSERT_TRUE(racks.is_ok()) << racks.status().message();
  EXPECT_EQ(racks->rack_of, (std::vector<int>{0, 1}));
  // An address is no host name with a domain.
  expect_error("SwitchName=s Nodes=10,h0", {"10.1.2.3 is not in it"}, {"10.1.2.3"});
}

TEST(RacksFile, TopographSwitchWithNodesAndSwitchesInTwoLines) {
  expect_racks("SwitchName=a Switches=b\nSwitchName=a Nodes=h0\nSwitchName=b Nodes=h1\n",
               {"h0", "h1"}, {"a", "b"}, {0, 1});
}

TEST(RacksFile, UnknownNodesAreNamed) {
  expect_error(kTree, {"h8, h9, x and 1 more are not in it (4 of 5 nodes", "RIFFLE_NODE_NAME"},
               {"h0", "h8", "h9", "x", "y"});
}

TEST(RacksFile, ContradictionsNameBothLines) {
  expect_error(
      "SwitchName=a Nodes=h[0-3]\nSwitchName=b Nodes=h[3-5]\n",
      {"line 2", "node h3 is in switch b", "line 1", "in switch a", "one switch per node"});
  expect_error("BlockName=a Nodes=h0\n\nBlockName=b Nodes=h0\n", {"line 3", "block b", "line 1"});
  expect_error("SwitchName=a Nodes=h0\nSwitchName=a Nodes=h1\n",
               {"line 2", "switch a is there already in line 1"});
  expect_error("SwitchName=a Nodes=h0\nSwitchName=b Switches=a,c\n",
               {"line 2", "lower switch c", "SwitchName"});
  expect_error("SwitchName=l Nodes=h0\nSwitchName=a Switches=b\nSwitchName=b Switches=a,l\n",
               {"line 2", "switch a is below itself"});
  expect_error("SwitchName=a Nodes=h0\nBlockName=b Nodes=h1\n", {"switches and blocks"});
}

TEST(RacksFile, MalformedLinesSayWhatIsAccepted) {
  expect_error("SwitchName=a Nodes=h0\nSwitch b\n", {"line 2", "KEY=VALUE", "Switch b"});
  expect_error("SwitchName=a Nods=h0\n", {"line 1", "unknown key \"nods\"", "Nodes=LIST"});
  expect_error("SwitchName=a\n", {"line 1", "neither nodes nor switches"});
  expect_error("SwitchName=a Nodes=h[0-\n", {"line 1", "not closed", "node[1-4,7]"});
  expect_error("SwitchName=a \\\nNodes=\n", {"line 1", "has no value"});
  expect_error("Nodes=h0\n", {"line 1", "without a name"});
  expect_error("SwitchName=a Nodes=h0 Nodes=h1\n", {"line 1", "given twice"});
  expect_error("SwitchName=a BlockName=b Nodes=h0\n", {"line 1", "a switch and a block"});
  for (const char* empty : {"", "\n\n", "# nothing\n", "BlockSizes=4\n"}) {
    expect_error(empty, {"names no nodes", "SwitchName=NAME", "BlockName=NAME"});
  }
}

TEST(RacksFile, MalformedYamlSaysWhatIsAccepted) {
  expect_error("- topology: t\n  tree:\n    switch: a\n", {"line 3", "list \"switches\""});
  expect_error("- topology: t\n  tree:\n   switches:\n    - name: a\n", {"line 4", "switch: NAME"});
  expect_error("- topology: t\n  tree: {switches: [{switch: a, nodes: [h0]}]}\n",
               {"line 2", "nodes must be a text"});
  expect_error("- topology: t\n  flat: true\n", {"names no nodes", "block: blocks:"});
  expect_error("- a: b\n   c: d\n", {"line 2", "indented"});
  expect_error("- x: &anchor\n", {"line 1", "anchors"});
  expect_error("\t- x\n", {"line 1", "tab"});
  expect_error("{\"instances\": [", {"line 1", "not closed"});
  expect_error("{\"instances\": [{}]}", {"line 1", "needs an id"});
  expect_error("{\"instances\": 1}", {"line 1", "accepted is a list of topologies"});
  expect_error("{\"instances\": []}\nmore", {"line 2"});
  expect_error("{\"a\\q\": 1}", {"line 1", "escape"});
  expect_error(std::string(200, '['), {"line 1", "nested deeper than 32"});
  std::string deep;
  for (int i = 0; i < 50; ++i) deep += std::string(i, ' ') + "a:\n";
  expect_error(deep, {"nested deeper than 32"});
  expect_error(std::string("- a: b\0c\n", 9), {"line 1"});
}

TEST(RacksFile, LoadSaysWhichKnobToCheck) {
  const auto missing = load_racks("/nonexistent/topology.conf", named({"h0"}));
  ASSERT_FALSE(missing.is_ok());
  EXPECT_NE(missing.status().message().find("RIFFLE_TOPOLOGY"), std::string::npos);
  EXPECT_FALSE(load_racks("/", named({"h0"})).is_ok());
}

TEST(RacksFile, ReplacesTheRacksOfAFabric) {
  Fabric fabric = even_fabric(3, 1000);
  const auto racks = parse_racks(kTree, "t.conf", named({"h0", "h4", "h1"}));
  ASSERT_TRUE(racks.is_ok());
  put_into_racks(*racks, fabric);
  EXPECT_TRUE(validate(fabric).is_ok());
  EXPECT_EQ(fabric.nodes[1].rack, 1);
  EXPECT_EQ(fabric.racks[1].name, "leaf2");
}

TEST(RacksFile, FindsTheFileOfTheSlurmJob) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "slurm_topology_file";
  fs::create_directories(folder);
  setenv("SLURM_CONF", (folder / "slurm.conf").c_str(), 1);
  EXPECT_EQ(slurm_topology_file(), "");
  std::ofstream(folder / "topology.conf") << kTree;
  EXPECT_EQ(slurm_topology_file(), folder / "topology.conf");
  std::ofstream(folder / "topology.yaml") << kYaml;
  EXPECT_EQ(slurm_topology_file(), folder / "topology.yaml");
  unsetenv("SLURM_CONF");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace riffle::racks_file_test
