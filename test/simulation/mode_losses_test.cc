// RIFFLE_ON_LOSS=continue in every mode, in the simulator: nodes are killed, stopped, cut off in
// mid-call and in the middle of the agreement on a mode. Nobody hangs, every call of a survivor is
// what mode_checks.h says, no mass of survivors is lost.
#include <gtest/gtest.h>

#include "test/modes/mode_job.h"

namespace riffle::sim::mode_losses_test {
namespace {

struct Totals {
  std::uint64_t staged = 0, after_loss = 0, dense = 0, broken_off = 0, full = 0, sparse = 0;
  int in_switches = 0;
};

ModeJob::Options options_of(SyncMode mode, std::uint64_t seed) {
  std::mt19937_64 random(seed * 7919 + static_cast<std::uint64_t>(mode));
  ModeJob::Options o;
  o.seed = seed;
  o.settings.mode = mode;
  o.settings.shadow_steps = 3;
  o.settings.wire = seed % 2 == 0 ? WireFormat::kBfloat16 : WireFormat::kFloat8Block;
  o.is_in_place = seed % 3 == 0;
  o.sparse_teams = seed % 4 == 1 ? 2 : 1;
  const std::size_t losses = 1 + seed % 2;
  while (o.faults.size() < losses) {
    ModeFault f;
    f.kind = static_cast<ModeFault::Kind>(random() % 3);
    f.node = static_cast<int>(random() % static_cast<std::uint64_t>(o.nodes));
    if (!o.faults.empty() && o.faults[0].node == f.node) continue;
    f.is_in_switch = seed % 5 == 4 || (seed % 5 == 3 && o.faults.empty());
    f.step = f.is_in_switch ? 1 : 4 + random() % 16;  // modes begin about step 9
    f.delay_ns = random() % 2'000'000;
    if (!o.faults.empty() && random() % 2 == 0) f.step = o.faults[0].step;  // on top of the first
    o.faults.push_back(f);
  }
  std::ranges::sort(o.faults, {}, &ModeFault::step);
  return o;
}

Totals play(SyncMode mode, std::uint64_t seeds, double momentum = 0) {
  Totals t;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    ModeJob::Options o = options_of(mode, seed);
    o.settings.momentum = momentum;
    ModeJob job(o);
    EXPECT_EQ(job.run(), "") << name_of(mode) << ", seed " << seed;
    if (::testing::Test::HasFailure()) break;
    t.staged += job.staged_calls;
    t.after_loss += job.staged_after_loss;
    t.dense += job.dense_segments;
    t.broken_off += job.broken_off;
    t.full += job.full_after_loss;
    t.sparse += job.sparse_after_loss;
    t.in_switches += job.faults_in_switches;
  }
  std::printf(
      "%llu staged calls, %llu after a loss, %llu broken off, %llu full after a loss, "
      "%llu segments dense and %llu sparse among survivors, %d faults in switches\n",
      static_cast<unsigned long long>(t.staged), static_cast<unsigned long long>(t.after_loss),
      static_cast<unsigned long long>(t.broken_off), static_cast<unsigned long long>(t.full),
      static_cast<unsigned long long>(t.dense), static_cast<unsigned long long>(t.sparse),
      t.in_switches);
  return t;
}

TEST(ModeLosses, DsSync) {
  const Totals t = play(SyncMode::kDsSync, 12);
  EXPECT_GT(t.after_loss, 100u);
  EXPECT_GT(t.broken_off, 10u);
  EXPECT_GT(t.full, 20u);
  EXPECT_GT(t.in_switches, 2);
}

TEST(ModeLosses, Narrow) {
  const Totals t = play(SyncMode::kNarrow, 8);
  EXPECT_GT(t.after_loss, 50u);
}

// Their calls are summed whole, also where only a part meant something when the mode began.
TEST(ModeLosses, NarrowCallsThatNoNodeKnows) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    ModeJob::Options o = options_of(SyncMode::kNarrow, seed);
    o.faults.clear();
    o.is_in_place = false;
    o.unknown_steps = {20};
    ModeJob job(o);
    EXPECT_EQ(job.run(), "") << seed;
    EXPECT_GT(job.staged_calls, 20u);
  }
}

// Of its momenta nothing is checked here but that they keep nobody from going on.
TEST(ModeLosses, MoshpitWithMomentum) {
  const Totals t = play(SyncMode::kMoshpit, 6, 0.9);
  EXPECT_GT(t.after_loss, 50u);
  EXPECT_GT(t.broken_off, 5u);
}

TEST(ModeLosses, ShadowSync) {
  const Totals t = play(SyncMode::kShadowSync, 12);
  EXPECT_GT(t.after_loss, 100u);
  EXPECT_GT(t.full, 20u);
}

// Until the mode has been ended and begun anew segments are dense.
TEST(ModeLosses, Sparse) {
  const Totals t = play(SyncMode::kSparse, 12);
  EXPECT_GT(t.after_loss, 100u);
  EXPECT_GT(t.dense, 100u);
  EXPECT_GT(t.sparse, 100u);
  EXPECT_GT(t.in_switches, 2);
}

TEST(ModeLosses, SparseOfEveryKind) {
  for (const auto residual : {sparse::ResidualPolicy::kPartial, sparse::ResidualPolicy::kEf21}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      ModeJob::Options o = options_of(SyncMode::kSparse, seed);
      o.settings.sparse.residual = residual;
      ModeJob job(o);
      EXPECT_EQ(job.run(), "") << seed;
      EXPECT_GT(job.staged_after_loss, 0u) << seed;
    }
  }
}

// A node is lost while the agreement on a mode is on its way, so that some have heard the decision.
TEST(ModeLosses, InTheMiddleOfAnAgreement) {
  int struck = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    ModeJob::Options o = options_of(seed % 2 == 0 ? SyncMode::kDsSync : SyncMode::kSparse, seed);
    o.nodes = 7;
    o.steps = 13;
    o.sparse_teams = 1;
    o.faults = {{.kind = ModeFault::Kind::kKill,
                 .node = seed % 4 < 2 ? 0 : 2,  // who decides, and who passes it on
                 .step = 1,
                 .delay_ns = seed * 50'000,
                 .is_in_switch = true}};
    ModeJob job(o);
    EXPECT_EQ(job.run(), "") << seed;
    struck += job.faults_in_switches;
  }
  EXPECT_GT(struck, 20);
}

// All but one are lost, one after the other.
TEST(ModeLosses, TheLastOneGoesOnAlone) {
  for (const SyncMode mode : {SyncMode::kDsSync, SyncMode::kShadowSync, SyncMode::kSparse}) {
    ModeJob::Options o = options_of(mode, 2);
    o.nodes = 4;
    o.sparse_teams = 1;
    o.faults = {{ModeFault::Kind::kKill, 3, 12},
                {ModeFault::Kind::kKill, 2, 18},
                {ModeFault::Kind::kKill, 1, 24}};
    ModeJob job(o);
    EXPECT_EQ(job.run(), "") << name_of(mode);
    EXPECT_EQ(job.terms, 4);
  }
}

// Nodes that are through close at very different times, from before the slowest has begun its last
// rounds to long after it. Nobody sees an error, nobody is counted as lost, no round is given up.
ModeJob::Options leaving(SyncMode mode, std::uint64_t seed) {
  std::mt19937_64 random(seed * 104729 + static_cast<std::uint64_t>(mode));
  ModeJob::Options o;
  o.seed = seed;
  o.settings.mode = mode;
  o.settings.shadow_steps = 3;
  o.settings.full_every = seed % 2 == 0 ? 7 : 1000;
  if (seed % 4 != 0)
    std::erase_if(o.calls, [](const testing::JobCall& c) { return c.count == 100; });
  o.steps = 24 + static_cast<int>(random() % 6);
  o.peer_timeout_ns = 4'000'000'000;
  for (int r = 0; r < o.nodes; ++r) {
    o.delay_ns.push_back(random() % 2 == 0 ? 0 : random() % 1'500'000);
    o.close_ns.push_back(random() % 3 == 0 ? 0 : random() % 2'000'000'000);
  }
  return o;
}

TEST(ModeLosses, NodesThatAreThroughCloseWhenTheyLike) {
  for (const SyncMode mode : {SyncMode::kExact, SyncMode::kDsSync, SyncMode::kMoshpit,
                              SyncMode::kShadowSync, SyncMode::kSparse}) {
    int lingered = 0, early = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      ModeJob job(leaving(mode, seed));
      EXPECT_EQ(job.run(), "") << name_of(mode) << ", seed " << seed;
      EXPECT_EQ(job.terms, 1) << name_of(mode) << ", seed " << seed;
      EXPECT_EQ(job.broken_off, 0u) << name_of(mode) << ", seed " << seed;
      EXPECT_EQ(job.cut_off, 0) << name_of(mode) << ", seed " << seed;
      lingered += job.lingered;
      early += job.closed_early;
    }
    std::printf("%s: %d closed before all had their results, %d lingered\n", name_of(mode), early,
                lingered);
    if (mode == SyncMode::kShadowSync) {
      EXPECT_GT(lingered, 8);
      EXPECT_GT(early, 8);
    }
  }
}

// The same without RIFFLE_ON_LOSS=continue.
TEST(ModeLosses, NodesCloseWhenTheyLikeWhereALossIsAnError) {
  for (const SyncMode mode : {SyncMode::kExact, SyncMode::kDsSync, SyncMode::kMoshpit,
                              SyncMode::kShadowSync, SyncMode::kSparse}) {
    int lingered = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      ModeJob::Options o = leaving(mode, seed);
      o.survivors.is_on = o.settings.survives_losses = false;
      ModeJob job(o);
      EXPECT_EQ(job.run(), "") << name_of(mode) << ", seed " << seed;
      lingered += job.lingered;
    }
    if (mode == SyncMode::kShadowSync) {
      EXPECT_GT(lingered, 8);
    }
  }
}

// Processes end soon after they have closed, with rounds under way that others need; or those take
// longer than the peer timeout. More than half of the nodes do so before the slow ones are through,
// which go on without a quorum of all.
TEST(ModeLosses, NodesThatAreThroughMayVanish) {
  int lingered = 0, cut_off = 0, broken_off = 0, terms = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    ModeJob::Options o = leaving(SyncMode::kShadowSync, seed);
    o.settings.full_every = 1000;
    if (seed % 3 == 0) {
      o.peer_timeout_ns = 20'000'000;
    } else {
      o.exit_ns = 300'000 + seed * 50'000;
    }
    for (std::uint64_t& ns : o.close_ns) ns = 0;
    ModeJob job(o);
    EXPECT_EQ(job.run(), "") << seed;
    lingered += job.lingered;
    cut_off += job.cut_off;
    broken_off += static_cast<int>(job.broken_off);
    terms += job.terms - 1;
  }
  std::printf("%d lingered, %d were cut off, %d calls with parts left as they were, %d new terms\n",
              lingered, cut_off, broken_off, terms);
  EXPECT_GT(cut_off, 20);
  EXPECT_GT(terms, 10);
}

// Losses at the end of a job, among goodbyes.
TEST(ModeLosses, SomeCloseAndSomeAreLost) {
  int lingered = 0, after = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    ModeJob::Options o = leaving(SyncMode::kShadowSync, seed);
    o.peer_timeout_ns = 300'000'000;
    for (std::uint64_t& ns : o.close_ns) ns %= 50'000'000;
    const auto last = static_cast<std::uint64_t>(o.steps) - 1;
    o.faults = {{.kind = static_cast<ModeFault::Kind>(seed % 3),
                 .node = static_cast<int>(seed % 8),
                 .step = last - seed % 3,
                 .delay_ns = seed * 400'000}};
    if (seed % 2 == 0) o.exit_ns = 5'000'000;
    ModeJob job(o);
    EXPECT_EQ(job.run(), "") << seed;
    lingered += job.lingered;
    after += job.terms - 1;
  }
  std::printf("%d lingered, %d new terms\n", lingered, after);
  EXPECT_GT(lingered, 10);
  EXPECT_GT(after, 5);
}

// These checks would notice residuals that do not come back, and a node that averages what others
// keep.
TEST(ModeLosses, PlantedBugsAreFound) {
  const auto finds = [](SyncMode mode, bool SurvivorOptions::*bug) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 40 && found < 2; ++seed) {
      ModeJob::Options o = options_of(mode, seed);
      o.survivors.*bug = true;
      found += !ModeJob(o).run().empty();
    }
    return found;
  };
  EXPECT_EQ(finds(SyncMode::kSparse, &SurvivorOptions::plants_spent_residual), 2);
  EXPECT_EQ(finds(SyncMode::kDsSync, &SurvivorOptions::plants_own_average), 2);
}

}  // namespace
}  // namespace riffle::sim::mode_losses_test
