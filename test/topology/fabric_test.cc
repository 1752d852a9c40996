// topology/fabric: checks of a fabric, and the file in and out.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "topology/fabric/fabric_file.h"

namespace riffle::fabric_test {
namespace {

const char kFile[] = R"(latency_us = 20

[default]
rate_mbps = 400

[[rack]]
name = "left"
uplink_mbps = 200

[[rack]]
name = "middle"

[[rack]]
name = "right"
up_mbps = 150
down_mbps = 250

[[node]]
name = "a"
rack = "left"

[[node]]
name = "10.0.0.2"
out_mbps = 100.5
in_mbps = 1000
rack = "right"

[[node]]
name = "c"
rate_mbps = 1
)";

Result<LoadedFabric> parse(const std::string& text, std::vector<NodeAliases> nodes = {{"a"}}) {
  return parse_fabric(text, "f.toml", nodes);
}

void expect_error(const std::string& text, std::initializer_list<const char*> parts,
                  std::vector<NodeAliases> nodes = {{"a"}}) {
  const auto result = parse(text, std::move(nodes));
  ASSERT_FALSE(result.is_ok()) << text;
  for (const char* part : parts) {
    EXPECT_NE(result.status().message().find(part), std::string::npos)
        << part << " not in: " << result.status().message();
  }
}

TEST(FabricFile, PicksTheNodesOfTheCommunicatorInRankOrder) {
  const auto loaded = parse(kFile, {{"b", "10.0.0.2"}, {"a"}, {"x", "10.0.0.9"}, {"c"}, {"a"}});
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  const Fabric& f = loaded->fabric;
  EXPECT_EQ(f.latency_us, 20);
  ASSERT_EQ(f.size(), 5);
  EXPECT_EQ(f.nodes[0].name, "10.0.0.2");
  EXPECT_EQ(f.nodes[0].out_kbps, 100'500);
  EXPECT_EQ(f.nodes[0].in_kbps, 1'000'000);
  EXPECT_EQ(f.nodes[1].out_kbps, 400'000);
  EXPECT_EQ(f.nodes[2].name, "x");
  EXPECT_EQ(f.nodes[2].in_kbps, 400'000);
  EXPECT_EQ(f.nodes[3].out_kbps, 1'000);
  EXPECT_EQ(f.nodes[4].rack, f.nodes[1].rack);
  ASSERT_EQ(f.racks.size(), 3u);  // right, left, none; "middle" has no node here
  EXPECT_EQ(f.racks[f.nodes[0].rack].name, "right");
  EXPECT_EQ(f.racks[f.nodes[0].rack].up_kbps, 150'000);
  EXPECT_EQ(f.racks[f.nodes[0].rack].down_kbps, 250'000);
  EXPECT_EQ(f.racks[f.nodes[1].rack].up_kbps, 200'000);
  EXPECT_EQ(f.racks[f.nodes[1].rack].down_kbps, 200'000);
  EXPECT_EQ(f.nodes[2].rack, f.nodes[3].rack);
  EXPECT_EQ(f.racks[f.nodes[2].rack].up_kbps, 0);
  ASSERT_EQ(loaded->notes.size(), 1u);
  EXPECT_NE(loaded->notes[0].find("x = 10.0.0.9"), std::string::npos) << loaded->notes[0];
}

TEST(FabricFile, TheExampleInTheDocsIsRead) {
  const auto docs = std::filesystem::path(RIFFLE_DOCS) / "fabric.md";
  std::ifstream in(docs);
  ASSERT_TRUE(in.is_open()) << docs;
  const std::string page((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::size_t begin = page.find("```toml\n") + 8;
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  const auto loaded = parse(example, {{"node01"}, {"10.0.0.2"}, {"elsewhere"}});
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  EXPECT_EQ(loaded->fabric.nodes[0].out_kbps, 10'000'000);
  EXPECT_EQ(loaded->fabric.nodes[1].out_kbps, 2'500'000);
  EXPECT_EQ(loaded->notes.size(), 1u);
}

TEST(FabricFile, TheFirstAliasDecides) {
  const auto loaded = parse(kFile, {{"c", "a"}});
  ASSERT_TRUE(loaded.is_ok());
  EXPECT_EQ(loaded->fabric.nodes[0].out_kbps, 1'000);
}

TEST(FabricFile, FaultsNameFileLineKeyAndWhatIsAccepted) {
  expect_error("latency_us = \n", {"f.toml", "line 1"});
  expect_error("[[nodes]]\nname = \"a\"\n",
               {"line 1", "\"nodes\"", "latency_us, rack_latency_us, default, rack, node"});
  expect_error("[default]\nrate_mbps = 4\n\n[[node]]\nname = \"a\"\nrate = 3\n",
               {"line 6", "[[node]]", "\"rate\"", "rate_mbps"});
  expect_error("[default]\nrate_mbps = 0\n", {"line 2", "rate_mbps", "0.001 to 10000000"});
  expect_error("[default]\nrate_mbps = \"4\"\n", {"line 2", "a number"});
  expect_error("[default]\nrate_mbps = nan\n", {"line 2", "a number"});
  expect_error("[default]\nrate_mbps = -5\n", {"line 2", "a number"});
  expect_error("latency_us = 1.5\n", {"line 1", "latency_us", "whole number"});
  expect_error("latency_us = 5\nrack_latency_us = 6\n[[node]]\nname = \"a\"\nrate_mbps = 1\n",
               {"f.toml", "line 2", "rack_latency_us", "from 0 to 5"}, {{"a"}});
  expect_error("default = 4\n", {"line 1", "[default]"});
  expect_error("node = [1, 2]\n", {"line 1", "[[node]]"});
  expect_error("[[node]]\nname = \"a\"\n", {"line 1", "\"a\"", "[default]"});
  expect_error("[[node]]\nrate_mbps = 1\n", {"line 1", "name is missing"});
  expect_error("[[node]]\nname = 5\n", {"line 2", "name must be a text"});
  expect_error("[[node]]\nname = \"a\"\nrate_mbps = 1\nout_mbps = 1\nin_mbps = 2\n",
               {"excludes out_mbps"});
  expect_error("[[node]]\nname = \"a\"\nout_mbps = 1\n", {"out_mbps and in_mbps come together"});
  expect_error("[[node]]\nname = \"a\"\nrate_mbps = 1\nrack = \"r\"\n", {"no [[rack]]", "\"r\""});
  expect_error("[[rack]]\nname = \"r\"\n[[rack]]\nname = \"r\"\n", {"line 3", "two racks"});
  expect_error("[[node]]\nname = \"a\"\nrate_mbps = 1\n[[node]]\nname = \"a\"\nrate_mbps = 1\n",
               {"line 4", "line 1"});
  expect_error("[[node]]\nname = \"a\"\nrate_mbps = 1\n", {"b = 10.0.0.2", "[default]"},
               {{"b", "10.0.0.2"}});
}

TEST(FabricFile, RoundTrip) {
  Fabric f = even_fabric(3, 400'001);
  f.latency_us = 7;
  f.rack_latency_us = 3;
  f.racks = {{"up \"1\"\\", 200'000, 200'000}, {"b", 1, 0}};
  f.nodes[1].in_kbps = 999;
  f.nodes[1].rack = 1;
  const auto back = parse(to_toml(f), {{"node0"}, {"node1"}, {"node2"}});
  ASSERT_TRUE(back.is_ok()) << back.status().message() << to_toml(f);
  EXPECT_EQ(to_toml(back->fabric), to_toml(f));
  EXPECT_EQ(back->fabric.nodes[1].in_kbps, 999);
  EXPECT_EQ(back->fabric.nodes[0].out_kbps, 400'001);
  EXPECT_EQ(back->fabric.racks[1].up_kbps, 1);
}

TEST(FabricFile, ReadsFromDiskAndNamesWhatIsNoFile) {
  const auto dir = std::filesystem::path(::testing::TempDir()) / "riffle_fabric_test";
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "f.toml") << kFile;
  const std::vector<NodeAliases> nodes{{"a"}};
  EXPECT_TRUE(load_fabric((dir / "f.toml").string(), nodes).is_ok());
  const auto missing = load_fabric((dir / "none.toml").string(), nodes);
  ASSERT_FALSE(missing.is_ok());
  EXPECT_NE(missing.status().message().find("none.toml"), std::string::npos);
  EXPECT_FALSE(load_fabric(dir.string(), nodes).is_ok());
  std::filesystem::remove_all(dir);
}

TEST(Fabric, ValidateNamesTheCulprit) {
  EXPECT_TRUE(validate(even_fabric(4, 1)).is_ok());
  Fabric f = even_fabric(2, 1000);
  f.nodes[1].in_kbps = 0;
  EXPECT_NE(validate(f).message().find("node1"), std::string::npos);
  f = even_fabric(2, 1000);
  f.nodes[0].rack = 1;
  EXPECT_NE(validate(f).message().find("node0"), std::string::npos);
  f = even_fabric(2, 1000);
  f.racks[0].down_kbps = -1;
  EXPECT_NE(validate(f).message().find("rack all"), std::string::npos);
  f.racks.clear();
  EXPECT_FALSE(validate(f).is_ok());
  EXPECT_FALSE(validate(Fabric{}).is_ok());
}

}  // namespace
}  // namespace riffle::fabric_test
