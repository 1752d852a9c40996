// RIFFLE_ON_LOSS=continue where a whole rack is lost at once, on the networks of bench/profiles:
// its nodes are killed, stopped or cut off, in mid-collective or while no call runs. Whoever keeps
// a quorum goes on, all others that live end with an error that says what is missing; no matter
// where, every element is the full sum or the survivors' scaled one (play.h), or, in ds_sync, what
// mode_job.h says.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lab/cluster/profile_file.h"
#include "lab/simulation/play.h"
#include "test/modes/mode_job.h"

namespace riffle::sim::rack_losses_test {
namespace {

using Nodes = std::vector<int>;
using Kind = Fault::Kind;

constexpr std::uint64_t kPeerTimeoutNs = 1'000'000'000;
constexpr Kind kKinds[] = {Kind::kKill, Kind::kStop, Kind::kCutRack};

Fabric fabric_of_profile(const std::string& name) {
  const auto profile = cluster::load_profile(name, PROFILES);
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return cluster::fabric_of(*profile);
}

Nodes nodes_of(const Fabric& fabric, const std::set<int>& racks) {
  Nodes nodes;
  for (int r = 0; r < fabric.size(); ++r) {
    if (racks.count(fabric.nodes[r].rack) > 0) nodes.push_back(r);
  }
  return nodes;
}

Nodes all_but(const Fabric& fabric, int rack) {
  Nodes nodes;
  for (int r = 0; r < fabric.size(); ++r) {
    if (fabric.nodes[r].rack != rack) nodes.push_back(r);
  }
  return nodes;
}

// With pauses in which no call runs, or without.
Scenario job_on(const std::string& profile, std::uint64_t seed, bool has_pauses) {
  Scenario s = surviving_job(fabric_of_profile(profile), seed, 12, 16 << 10);
  s.network.peer_timeout_ns = s.session.peer_timeout_ns = kPeerTimeoutNs;
  s.session.engine.chunk_bytes = 16 << 10;
  s.session.engine.piece_bytes = 4 << 10;
  s.session.engine.max_chunks = 8;
  s.outstanding = has_pauses ? 1 : 2;
  s.most_think_ns = has_pauses ? 60'000'000 : 0;
  return s;
}

// When how many nodes have how many calls under way.
struct Moment {
  std::uint64_t ns;
  int under_way;
};

std::vector<Moment> moments_of(const Scenario& s) {
  std::vector<Moment> moments;
  int under_way = 0;
  const Outcome outcome = play(s, [&](std::uint64_t ns, const std::string& what) {
    under_way += what.find("posts call") != std::string::npos ? 1 : 0;
    under_way -= what.find("has the result of call") != std::string::npos ? 1 : 0;
    moments.push_back({ns, under_way});
  });
  EXPECT_EQ(outcome.broken, "") << describe(s);
  return moments;
}

// In the middle of the `skip`-th pause (no call runs anywhere) or call (all nodes are at it).
std::uint64_t moment_in(const Scenario& s, bool is_pause, int skip) {
  const std::vector<Moment> moments = moments_of(s);
  std::uint64_t found = 0;
  for (std::size_t i = 0; i + 1 < moments.size(); ++i) {
    const std::uint64_t length_ns = moments[i + 1].ns - moments[i].ns;
    const bool fits = is_pause ? moments[i].under_way == 0 : moments[i].under_way >= s.size();
    if (!fits || length_ns < 10'000 || moments[i].ns < 5'000'000) continue;
    if (i + 2 + static_cast<std::size_t>(s.size()) > moments.size()) break;  // the job's end
    found = moments[i].ns + length_ns / 2;
    if (skip-- == 0) break;
  }
  EXPECT_GT(found, 0u) << "there is no such moment";
  return found;
}

void lose_rack(Scenario* s, Kind kind, int rack, std::uint64_t when_ns) {
  Fault f;
  f.kind = kind;
  f.when_ns = when_ns;
  if (kind == Kind::kCutRack) {
    f.node = rack;
    s->faults.push_back(f);
    return;
  }
  for (const int node : nodes_of(s->fabric, {rack})) {
    f.node = node;
    s->faults.push_back(f);
  }
}

// Those go on that should, together and to the last call, and nobody else.
void expect_side(const Scenario& s, const Outcome& outcome, const Nodes& side) {
  EXPECT_EQ(outcome.broken, "") << describe(s);
  for (int r = 0; r < s.size(); ++r) {
    const NodeEnd& end = outcome.nodes[r];
    const std::string who = "node " + std::to_string(r) + "\n" + describe(s);
    if (std::binary_search(side.begin(), side.end(), r)) {
      EXPECT_EQ(end.error, "") << who;
      EXPECT_EQ(end.finished, s.calls.size()) << who;
      EXPECT_EQ(end.side, side) << who;
    } else if (end.is_alive) {
      EXPECT_LT(end.finished, s.calls.size()) << who;
    }
  }
}

// Everybody else who lives has an error with how many are left, and which ones are missing.
void expect_errors_that_name(const Scenario& s, const Outcome& outcome, const Nodes& ending,
                             const Nodes& missing) {
  for (const int r : ending) {
    const NodeEnd& end = outcome.nodes[r];
    if (!end.is_alive) continue;
    const std::string count =
        "only " + std::to_string(ending.size()) + " of " + std::to_string(s.size()) + " nodes";
    EXPECT_NE(end.error.find(count), std::string::npos) << r << ": " << end.error << describe(s);
    const std::size_t list = std::min(end.error.find("lost node "), end.error.size());
    for (const int m : missing) {
      const std::string named = std::to_string(m);
      const auto has = [&](const std::string& text) {
        return end.error.find(text, list) != std::string::npos;
      };
      EXPECT_TRUE(has("node " + named + ":") || has(" " + named + ",") || has(" " + named + ")"))
          << r << ": " << end.error << describe(s);
    }
  }
}

// Any rack of three, lost in any way at any moment: the two others go on.
TEST(RackLosses, EveryRackOfThreeMayBeLost) {
  std::uint64_t seed = 0;
  for (int rack = 0; rack < 3; ++rack) {
    for (const Kind kind : kKinds) {
      for (const bool is_pause : {false, false, true}) {
        Scenario s = job_on("racks12", ++seed, is_pause);
        lose_rack(&s, kind, rack, moment_in(s, is_pause, static_cast<int>(seed % 4)));
        const Outcome outcome = play(s);
        expect_side(s, outcome, all_but(s.fabric, rack));
        if (kind == Kind::kCutRack) {
          expect_errors_that_name(s, outcome, nodes_of(s.fabric, {rack}), all_but(s.fabric, rack));
        }
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

// A process that ends with its error has told the others of its side before.
TEST(RackLosses, WhoEndsFirstStillCounts) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Scenario s = job_on("racks12", seed, false);
    lose_rack(&s, Kind::kCutRack, 2, moment_in(s, false, 3));
    s.exits_on_error = true;
    const Outcome outcome = play(s);
    EXPECT_EQ(outcome.broken, "") << describe(s);
    const Nodes rack = nodes_of(s.fabric, {2});
    const std::string count =
        "only " + std::to_string(rack.size()) + " of " + std::to_string(s.size()) + " nodes";
    for (const int r : rack) {
      EXPECT_NE(outcome.nodes[r].error.find(count), std::string::npos)
          << r << ": " << outcome.nodes[r].error << describe(s);
    }
  }
}

// Of two racks only the one with the lowest node goes on; a cut is both cases in one.
TEST(RackLosses, OfTwoRacksTheOneWithTheLowestNodeGoesOn) {
  std::uint64_t seed = 100;
  for (int rack = 0; rack < 2; ++rack) {
    for (const Kind kind : kKinds) {
      for (const bool is_pause : {false, false, true}) {
        Scenario s = job_on("racks8", ++seed, is_pause);
        lose_rack(&s, kind, rack, moment_in(s, is_pause, static_cast<int>(seed % 4)));
        const Outcome outcome = play(s);
        const Nodes left = nodes_of(s.fabric, {0}), right = nodes_of(s.fabric, {1});
        ASSERT_EQ(left.front(), 0);
        const bool goes_on = rack == 1 || kind == Kind::kCutRack;
        expect_side(s, outcome, goes_on ? left : Nodes());
        if (rack == 0 || kind == Kind::kCutRack) {
          expect_errors_that_name(s, outcome, right, left);
        }
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

// After a rack the quorum is one of those who are left: of two racks the one with the lower node.
TEST(RackLosses, ASecondRackMayBeLostIfTheLowerOneStays) {
  std::uint64_t seed = 200;
  for (const Kind kind : {Kind::kKill, Kind::kStop}) {
    for (int second = 1; second < 3; ++second) {
      Scenario s = job_on("racks12", ++seed, false);
      lose_rack(&s, kind, 0, moment_in(s, false, 2));
      // Noticed and survived by then, and some calls are left.
      const std::uint64_t later_ns = s.network.peer_timeout_ns + 100'000'000;
      s.calls.resize(200, s.calls[0]);
      lose_rack(&s, kind, second,
                s.faults[0].when_ns + (kind == Kind::kKill ? 20'000'000 : later_ns));
      const Outcome outcome = play(s);
      const Nodes middle = nodes_of(s.fabric, {1}), right = nodes_of(s.fabric, {2});
      expect_side(s, outcome, second == 2 ? middle : Nodes());
      if (second == 1) {
        for (const int r : right) {
          EXPECT_EQ(outcome.nodes[r].side, all_but(s.fabric, 0)) << describe(s);
          EXPECT_NE(outcome.nodes[r].error.find("only 4 of 8 nodes"), std::string::npos)
              << outcome.nodes[r].error;
        }
      }
      ASSERT_FALSE(HasFailure());
    }
  }
}

// ds_sync: averages in groups that reach across racks are given up by all who are left.
ModeJob::Options ds_sync_on(const std::string& profile, std::uint64_t seed, ModeFault::Kind kind,
                            int rack) {
  ModeJob::Options o;
  o.seed = seed;
  o.fabric = fabric_of_profile(profile);
  o.nodes = o.fabric->size();
  o.steps = 24;
  o.is_in_place = seed % 2 == 0;
  ModeFault f;
  f.kind = kind;
  f.step = 12 + seed % 5;
  f.delay_ns = seed % 7 * 150'000;
  f.side = nodes_of(*o.fabric, {rack});
  for (const int node : f.side) {
    f.node = node;
    o.faults.push_back(f);
  }
  return o;
}

TEST(RackLosses, DsSyncGoesOnWithoutARack) {
  std::uint64_t seed = 0, after_loss = 0, broken_off = 0;
  for (const auto& [profile, first] : {std::pair("racks12", 0), std::pair("racks8", 1)}) {
    const int racks = static_cast<int>(fabric_of_profile(profile).racks.size());
    for (int rack = first; rack < racks; ++rack) {
      for (const auto kind :
           {ModeFault::Kind::kKill, ModeFault::Kind::kStop, ModeFault::Kind::kCut}) {
        const ModeJob::Options o = ds_sync_on(profile, ++seed, kind, rack);
        ModeJob job(o);
        EXPECT_EQ(job.run(), "") << profile << ", seed " << seed;
        EXPECT_EQ(job.terms, 2) << profile << ", seed " << seed;
        for (const ModeFault& f : o.faults) {
          if (kind != ModeFault::Kind::kCut) break;
          EXPECT_NE(job.failure(f.node).find("only 4 of "), std::string::npos)
              << job.failure(f.node);
        }
        after_loss += job.staged_after_loss;
        broken_off += job.broken_off;
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  std::printf("%llu averages after a loss, %llu given up\n",
              static_cast<unsigned long long>(after_loss),
              static_cast<unsigned long long>(broken_off));
  EXPECT_GT(after_loss, 100u);
  EXPECT_GT(broken_off, 10u);
}

TEST(RackLosses, DsSyncEndsWhereTheLowestNodesRackIsLost) {
  for (const auto kind : {ModeFault::Kind::kKill, ModeFault::Kind::kStop}) {
    ModeJob::Options o = ds_sync_on("racks8", 3, kind, 0);
    o.without_quorum = all_but(*o.fabric, 0);
    ModeJob job(o);
    EXPECT_EQ(job.run(), "");
    for (const int r : o.without_quorum) {
      EXPECT_NE(job.failure(r).find("only 4 of 8 nodes"), std::string::npos) << job.failure(r);
      EXPECT_NE(job.failure(r).find("lost node 0:"), std::string::npos) << job.failure(r);
    }
  }
}

}  // namespace
}  // namespace riffle::sim::rack_losses_test
