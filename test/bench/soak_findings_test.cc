// What riffle_soak makes of what nodes saw; that faults get that far is soak_test.py's matter.
#include "bench/soak/findings.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace riffle::testing::soak_findings {
namespace {

using namespace bench::soak;
using Findings = std::vector<std::string>;

constexpr int kNodes = 4, kLost = 2, kKillSignal = 9;
constexpr std::int64_t kLostMs = 50'000;
constexpr std::uint32_t kAll = (1u << kNodes) - 1;

// A job that went as it should.
struct Ran {
  Ran(bool goes_on, Fault::Kind kind, int for_ms) {
    job.communicators = 2;
    job.goes_on = goes_on;
    job.faults = {{.kind = kind, .node = kLost, .for_ms = for_ms, .is_loss = true}};
    board.connected = kNodes;
    board.sums = 1000;
    board.lost_since_ms = kLostMs;
    for (int n = 0; n < kNodes; ++n) {
      board.nodes[n].stage = Board::Stage::kEnded;
      for (int c = 0; c < job.communicators; ++c) {
        Board::Communicator& own = of(n, c);
        own.is_running = false;
        own.sum = 77;
        own.since_loss = 5;
        own.members = goes_on && n != kLost ? kAll & ~bit_of(kLost) : kAll;
        if (!goes_on || n == kLost) own.ended_ms = kLostMs + 1000;
      }
    }
    if (kind != Fault::Kind::kKill) return;
    exits[kLost] = {.code = -1, .signal = kKillSignal};
    board.nodes[kLost].stage = Board::Stage::kSums;
    for (int c = 0; c < job.communicators; ++c) of(kLost, c).ended_ms = 0;
  }

  Board::Communicator& of(int node, int communicator) {
    return board.nodes[node].communicators[communicator];
  }
  Findings findings() const { return findings_of(job, board, kNodes, exits); }

  Job job;
  std::unique_ptr<Board> memory = std::make_unique<Board>();
  Board& board = *memory;
  std::vector<host::RankExit> exits = std::vector<host::RankExit>(kNodes, {.code = 0});
};

TEST(SoakFindings, ALossThatIsNoticedIsNone) {
  for (const bool goes_on : {false, true}) {
    EXPECT_EQ(Ran(goes_on, Fault::Kind::kKill, 0).findings(), Findings());
    EXPECT_EQ(Ran(goes_on, Fault::Kind::kStop, 9000).findings(), Findings());
    EXPECT_EQ(Ran(goes_on, Fault::Kind::kCut, 9000).findings(), Findings());
  }
}

TEST(SoakFindings, EndsThatNoFaultExplains) {
  Ran ran(true, Fault::Kind::kStop, 9000);
  ran.exits[0] = {.code = -1, .signal = 11};
  ran.exits[kLost] = {.code = -1, .signal = 6};
  ran.exits[3] = {.code = 1};
  EXPECT_EQ(ran.findings(), Findings({"node 0: ended by signal 11", "node 2: ended by signal 6",
                                      "node 3: exit code 1"}));
}

TEST(SoakFindings, WhatANodeFoundStandsForWhatFollowsFromIt) {
  Ran ran(false, Fault::Kind::kKill, 0);
  find(ran.board, 1, "a wrong sum");
  ran.of(1, 0).ended_ms = 0;
  EXPECT_EQ(ran.findings(), Findings({"node 1: a wrong sum"}));
}

TEST(SoakFindings, ALossThatOneCommunicatorDoesNotNotice) {
  Ran ran(false, Fault::Kind::kStop, 9000);
  ran.of(3, 1).ended_ms = 0;
  EXPECT_EQ(ran.findings(), Findings({"node 3: communicator 1: did not hear of the loss"}));
}

TEST(SoakFindings, ALossThatIsNoticedLate) {
  Ran killed(false, Fault::Kind::kKill, 0);
  killed.of(1, 0).ended_ms = kLostMs + 4100;
  EXPECT_EQ(killed.findings(), Findings({"node 1: communicator 0: heard of the loss after 4.1 s"}));
  Ran stopped(false, Fault::Kind::kStop, 9000);
  stopped.of(1, 0).ended_ms = kLostMs + 9900;
  EXPECT_EQ(stopped.findings(), Findings());
  stopped.of(1, 0).ended_ms = kLostMs + 10'100;
  EXPECT_EQ(stopped.findings(),
            Findings({"node 1: communicator 0: heard of the loss after 10.1 s"}));
}

TEST(SoakFindings, TheStoppedNodeHearsWhenItWakes) {
  Ran ran(true, Fault::Kind::kStop, 9000);
  ran.of(kLost, 0).ended_ms = kLostMs + 18'000;
  EXPECT_EQ(ran.findings(), Findings());
  ran.of(kLost, 0).ended_ms = kLostMs + 20'000;
  EXPECT_EQ(ran.findings(), Findings({"node 2: communicator 0: heard of the loss after 20.0 s"}));
}

TEST(SoakFindings, ANodeThatIsLostAndTakenAlong) {
  Ran ran(true, Fault::Kind::kCut, 9000);
  ran.of(0, 1).members = kAll;
  EXPECT_EQ(ran.findings(),
            Findings({"node 0: communicator 1: its last sum has node 2 in it, which was lost"}));
  ran.of(0, 1).since_loss = 1;  // which the lost node may have begun, too
  EXPECT_EQ(ran.findings(), Findings());
}

TEST(SoakFindings, AJobThatDidNothing) {
  Ran unconnected(true, Fault::Kind::kCut, 9000);
  unconnected.board.connected = 3;
  unconnected.board.lost_since_ms = 0;
  EXPECT_EQ(unconnected.findings(), Findings({"only 3 nodes connected"}));
  Ran idle(true, Fault::Kind::kCut, 9000);
  idle.board.sums = 0;
  EXPECT_EQ(idle.findings(), Findings({"there was no sum"}));
}

TEST(SoakFindings, AHangNamesWhatEveryNodeWaitsIn) {
  Ran ran(true, Fault::Kind::kKill, 0);
  ran.of(kLost, 0).is_running = ran.of(kLost, 1).is_running = true;
  find(ran.board, 0, "a wrong sum");
  ran.board.nodes[1].stage = Board::Stage::kSums;
  ran.of(1, 1).is_running = true;
  ran.board.nodes[3].stage = Board::Stage::kCloses;
  EXPECT_EQ(findings_of(ran.job, ran.board, kNodes, timeout_error("the ranks did not finish")),
            Findings({"it hangs: the ranks did not finish", "node 0: a wrong sum",
                      "node 1: communicator 1, sum 77: has not ended",
                      "node 3: has not closed its communicators"}));
  ran.board.nodes[3].stage = Board::Stage::kConnects;
  EXPECT_EQ(findings_of(ran.job, ran.board, kNodes, timeout_error("late")).back(),
            "node 3: has not connected");
}

}  // namespace
}  // namespace riffle::testing::soak_findings
