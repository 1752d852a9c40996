// The coordinator with peers that are shell scripts, and the lines between them.
#include "tools/probe/lead.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "plugin/version.h"
#include "tools/probe/peer.h"

namespace riffle::tools::lead_test {
namespace {

// A peer that says `words` in turn, each after a line came; the first at once.
void add(Crew& crew, const std::string& name, const std::vector<std::string>& words) {
  std::string script;
  for (const std::string& line : words) {
    script += (script.empty() ? "" : "read x || exit; ") + std::string("cat <<'E'\n") +
              kLinePrefix + line + "\nE\n";
  }
  crew.launch(name, {}, {"sh", "-c", script + "read x"});
}

std::string hello(const std::string& host, const std::string& version = kVersion) {
  return to_line(PeerHello{version, host, "00"});
}

std::string found(const std::string& trouble = "") {
  ProbeFindings f;
  for (const char* name : {"a", "b"}) f.nodes.push_back({name, 100, 100, 1, 0});
  f.racks = {{"all", 0, 0, 0}};
  f.pair_mbps = {{0, 90}, {90, 0}};
  f.trouble = trouble;
  return "found " + to_json(f);
}

class Lead : public ::testing::Test {
 protected:
  void SetUp() override { signal(SIGPIPE, SIG_IGN); }
  Crew crew_;
};

TEST_F(Lead, OneAttemptThatSucceeds) {
  add(crew_, "a", {hello("a"), found()});
  add(crew_, "b", {hello("b"), "done"});
  const auto findings = lead_probe(crew_, 5000, false);
  ASSERT_TRUE(findings) << findings.status().message();
  EXPECT_EQ(findings->nodes.size(), 2u);
  EXPECT_TRUE(findings->absent.empty());
}

TEST_F(Lead, OtherVersionsAndSecondNamesStayOut) {
  add(crew_, "a", {hello("a"), found()});
  add(crew_, "old", {hello("old", "0.0.1")});
  add(crew_, "b", {hello("b"), "done"});
  add(crew_, "a-again", {hello("a")});
  add(crew_, "odd", {"bonjour"});
  add(crew_, "sad", {"failed no network"});
  const auto findings = lead_probe(crew_, 5000, false);
  ASSERT_TRUE(findings) << findings.status().message();
  ASSERT_EQ(findings->absent.size(), 4u);
  EXPECT_EQ(findings->absent[0].first, "old");
  EXPECT_NE(findings->absent[0].second.find("runs riffle 0.0.1"), std::string::npos);
  EXPECT_EQ(findings->absent[1].first, "a-again");
  EXPECT_NE(findings->absent[1].second.find("calls itself a as a does"), std::string::npos);
  EXPECT_NE(findings->absent[2].second.find("unexpected answer: bonjour"), std::string::npos);
  EXPECT_EQ(findings->absent[3].second, "no network");
}

TEST_F(Lead, ALaunchNeedsOneProcessPerHost) {
  add(crew_, "rank 0", {hello("a"), found()});
  add(crew_, "rank 1", {hello("a")});
  add(crew_, "rank 2", {hello("b"), "done"});
  const auto findings = lead_probe(crew_, 5000, true);
  ASSERT_TRUE(findings) << findings.status().message();
  EXPECT_TRUE(findings->absent.empty());
}

TEST_F(Lead, WithoutTheLostOneTheyMeasureAgain) {
  add(crew_, "lost", {hello("lost")});  // it ends when it is told to go
  // Whoever fails says hello again by itself, whoever is content when it is asked.
  add(crew_, "a", {hello("a"), "failed lost node 0\n" + (kLinePrefix + hello("a")), found()});
  add(crew_, "b", {hello("b"), "done", hello("b"), "done"});
  const auto findings = lead_probe(crew_, 5000, false);
  ASSERT_TRUE(findings) << findings.status().message();
  ASSERT_EQ(findings->absent.size(), 1u);
  EXPECT_EQ(findings->absent[0].first, "lost");
}

TEST_F(Lead, WhatWasCutShortByALossIsMeasuredAgain) {
  add(crew_, "a", {hello("a"), found("the time for it was up"), hello("a"), found()});
  add(crew_, "lost", {hello("lost")});
  add(crew_, "b", {hello("b"), "done", hello("b"), "done"});
  const auto findings = lead_probe(crew_, 5000, false);
  ASSERT_TRUE(findings) << findings.status().message();
  EXPECT_EQ(findings->trouble, "");
  EXPECT_EQ(findings->absent.size(), 1u);
}

TEST_F(Lead, WhatFailsEverywhereNamesHosts) {
  add(crew_, "a", {hello("hosta"), "failed connect timed out waiting for node(s) 1"});
  add(crew_, "b", {hello("hostb"), "failed lost node 0: reset"});
  const auto findings = lead_probe(crew_, 5000, false);
  ASSERT_FALSE(findings);
  EXPECT_EQ(findings.status().message(), "connect timed out waiting for hostb");
}

TEST_F(Lead, OneHostIsNotEnough) {
  add(crew_, "a", {hello("a")});
  crew_.launch("b", {}, {"sh", "-c", "echo 'no such host' >&2; exit 255"});
  const auto findings = lead_probe(crew_, 5000, false);
  ASSERT_FALSE(findings);
  EXPECT_EQ(findings.status().message(),
            "probing needs 2 hosts, 1 came\n  b: ended, exit code 255: no such host");
}

TEST_F(Lead, HostsWithEqualNamesAreNotPassedOverSilently) {
  for (const char* const rank : {"rank 0", "rank 1", "rank 2"}) add(crew_, rank, {hello("node")});
  const auto findings = lead_probe(crew_, 5000, true);
  ASSERT_FALSE(findings);
  EXPECT_EQ(findings.status().message(),
            "probing needs 2 hosts, 1 came\n  2 more ranks of the same host name: hosts with "
            "equal names need RIFFLE_NODE_NAME");
}

TEST(ProbeLines, NumbersBecomeNames) {
  const std::vector<std::string> names = {"a", "b", "c"};
  EXPECT_EQ(with_names("lost node 2: reset", names), "lost c: reset");
  EXPECT_EQ(with_names("at node 0 waiting for node(s) 1, 2 (X, Y)", names),
            "at a waiting for b, c (X, Y)");
  EXPECT_EQ(with_names("node 9, node x, node", names), "node 9, node x, node");
}

TEST(ProbeLines, ThereAndBack) {
  Handle handle;
  handle.bytes[0] = 0xab;
  handle.bytes[127] = 1;
  const auto back = handle_from_hex(to_hex(handle));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->bytes, handle.bytes);
  EXPECT_FALSE(handle_from_hex("ab"));
  EXPECT_FALSE(handle_from_hex(to_hex(handle) + "00"));
  EXPECT_FALSE(handle_from_hex(std::string(256, 'x')));
  const auto order = order_from_line(to_line(PeerOrder{1, 5000, {"x", "y"}}));
  ASSERT_TRUE(order);
  EXPECT_EQ(order->rank, 1);
  EXPECT_EQ(order->timeout_ms, 5000);
  EXPECT_EQ(order->handles.size(), 2u);
  EXPECT_FALSE(order_from_line(to_line(PeerOrder{2, 5000, {"x", "y"}})));
  EXPECT_FALSE(order_from_line(to_line(PeerOrder{0, 0, {"x", "y"}})));
  EXPECT_FALSE(order_from_line(to_line(PeerOrder{0, 5000, {"x"}})));
  for (const char* bad : {"", "go", "go {}", "go []", "stop {}"})
    EXPECT_FALSE(order_from_line(bad));
  for (const char* bad : {"", "hello {}", "hello {\"version\": 1}"}) {
    EXPECT_FALSE(hello_from_line(bad));
  }
}

}  // namespace
}  // namespace riffle::tools::lead_test
