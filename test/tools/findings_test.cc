// tools/probe: findings there and back, slow nodes named, and the crew that measures.
#include "tools/probe/findings.h"

#include <gtest/gtest.h>

#include "tools/probe/crew.h"

namespace riffle::tools::findings_test {
namespace {

ProbeFindings four_nodes() {
  ProbeFindings f;
  for (int n = 0; n < 4; ++n) {
    f.nodes.push_back({"h" + std::to_string(n), 400, n == 2 ? 100.0 : 400.0, 0.9, n / 2});
    f.pair_mbps.push_back({380, 380, 95, 380});
    f.pair_mbps.back()[n] = 0;
  }
  f.racks = {{"r0", 200, 200, 0.8}, {"r1", 0, 0, 0.7}};
  f.latency_us = 40;
  f.seconds = 0.5;
  f.bytes = 1e8;
  f.rounds = 7;
  f.toml = "latency_us = 40\n";
  f.measured.push_back({.round = {{{0, 3}, {1, 2}}},
                        .samples = {{.kbps = 380'000, .together_kbps = 350'000, .hops = 2},
                                    {.kbps = 95'000, .is_steady = true, .rtt_us = 80}}});
  return f;
}

TEST(ProbeFindings, SlowUplinksComeFirstThenEnds) {
  const auto slow = four_nodes().slow();
  ASSERT_EQ(slow.size(), 3u);
  EXPECT_EQ(slow[0],
            "uplink of rack r0 (h0, h1): 200 Mbit/s, where its nodes reach 800 Mbit/s together");
  EXPECT_TRUE(slow[1].starts_with("downlink of rack r0 (h0, h1): 200 Mbit/s")) << slow[1];
  EXPECT_EQ(slow[2], "receiving of node h2: 100 Mbit/s, where 400 Mbit/s is usual");
  EXPECT_TRUE(to_text(four_nodes(), Colours(stdout)).starts_with("slow: uplink of rack r0"));
  ProbeFindings even = four_nodes();
  even.nodes[2].in_mbps = 390;
  even.racks[0] = {"r0", 790, 790, 0.8};
  for (auto& row : even.pair_mbps) row[2] = 380;
  EXPECT_TRUE(even.slow().empty());
  EXPECT_TRUE(to_text(even, Colours(stdout)).starts_with("nothing is slow"));
}

TEST(ProbeFindings, APairThatNothingExplainsIsNamed) {
  ProbeFindings f = four_nodes();
  f.nodes[2].in_mbps = 400;
  for (auto& row : f.pair_mbps) row[2] = 380;
  f.pair_mbps[3][2] = 120;  // within a rack
  f.pair_mbps[0][3] = 120;  // an uplink explains it
  const auto slow = f.slow();
  ASSERT_EQ(slow.size(), 3u);
  EXPECT_EQ(slow[2], "path from h3 to h2: 120 Mbit/s, where both ends do 400 Mbit/s");
}

TEST(ProbeFindings, TheAbsentAreNamed) {
  ProbeFindings f = four_nodes();
  f.absent = {{"h9", "ended, exit code 255: no route to host"}};
  EXPECT_NE(to_text(f, Colours(stdout)).find("absent: h9: ended, exit code 255: no route to host"),
            std::string::npos);
  const auto back = findings_from_json(to_json(f));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back->absent, f.absent);
}

TEST(ProbeFindings, JsonThereAndBack) {
  const auto back = findings_from_json(to_json(four_nodes()));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(to_json(*back), to_json(four_nodes()));
  ASSERT_EQ(back->measured.size(), 1u);
  EXPECT_EQ(back->measured[0].samples[0].hops, 2);
  EXPECT_EQ(back->measured[0].samples[1].hops, -1);
  for (const char* bad : {"", "{}", "[1]", "{\"nodes\": [{\"name\": 3}]}"}) {
    EXPECT_FALSE(findings_from_json(bad).is_ok()) << bad;
  }
  ProbeFindings wrong = four_nodes();
  wrong.pair_mbps.pop_back();
  EXPECT_FALSE(findings_from_json(to_json(wrong)).is_ok());
  wrong = four_nodes();
  wrong.nodes[0].rack = 2;
  EXPECT_FALSE(findings_from_json(to_json(wrong)).is_ok());
}

TEST(ProbeFindings, DrawsAllPairs) {
  const std::string svg = to_svg(four_nodes());
  EXPECT_NE(svg.find("h0 to h2: 95"), std::string::npos);
  EXPECT_EQ(svg.find("h0 to h0"), std::string::npos);
}

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }

TEST(Crew, HearsEverybodyThroughNoise) {
  Crew crew;
  const auto command = shell("echo welcome; echo \"riffle-probe hello $0\"; read x; echo \"$x!\"");
  crew.launch("a", {"env", "NAME=%h"}, command);
  crew.launch("b", {"env", "NAME=%h"}, command);
  crew.hear_all(10000, "waiting");
  for (auto& m : crew.members()) {
    EXPECT_EQ(m.absent, "");
    ASSERT_EQ(m.lines.size(), 1u);
    EXPECT_EQ(m.lines.front(), "hello sh");
    m.lines.clear();
    crew.tell(m, "go");
  }
  crew.hear_all(10000, "waiting");
  EXPECT_EQ(crew.members()[0].lines.front(), "go!");
}

TEST(Crew, SaysWhyAHostIsAbsentAndKeepsTheOthers) {
  Crew crew;
  crew.launch("good", {"env"}, shell("echo riffle-probe here; read x"));
  crew.launch("bad", {"sh", "-c", "echo 'Host key verification failed.' >&2; exit 255", "%h"}, {});
  crew.launch("none", {"/no/such/launcher", "%h"}, {});
  crew.launch("silent", {"env"}, shell("exec sleep 60"));
  crew.hear_all(1000, "waiting");
  EXPECT_EQ(crew.members()[0].absent, "");
  EXPECT_EQ(crew.members()[1].absent, "ended, exit code 255: Host key verification failed.");
  EXPECT_NE(crew.members()[2].absent.find("No such file"), std::string::npos)
      << crew.members()[2].absent;
  EXPECT_NE(crew.members()[3].absent.find("no answer within 1 s"), std::string::npos);
}

}  // namespace
}  // namespace riffle::tools::findings_test
