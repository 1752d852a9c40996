// Node 0's decision: when all-reduces stay with NCCL's ring, and that it is no error.
#include "plugin/collective/connect/decision.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "plugin/entry/options.h"
#include "plugin/version.h"
#include "test/plugin/entry/knobs.h"
#include "topology/plan/group_plan.h"
#include "topology/plan/replan.h"

namespace riffle::decision_test {
namespace {

constexpr std::int64_t kGbit = 1'000'000;  // kbit/s

// 3 GB/s through TCP and 5 GB/s of results: one core of a server.
std::vector<NodeReport> reports(int nodes) {
  std::vector<NodeReport> all(nodes);
  for (int i = 0; i < nodes; ++i) {
    all[i].rank = i;
    all[i].host = "host" + std::to_string(i);
    all[i].version = kVersion;
    all[i].knobs = decision_knobs(default_config());
    all[i].rate_kbps = 10 * kGbit;
    all[i].knows_rate = true;
    all[i].speed = {.reduce_mbps = 5000, .stack_mbps = 3000};
  }
  return all;
}

bool worth(const Fabric& fabric, const std::vector<NodeReport>& all, bool knows_rates = true,
           std::string* why = nullptr) {
  const Result<PlanChoice> choice = plan(fabric, 32 << 20, {});
  EXPECT_TRUE(choice) << choice.status().message();
  std::string ignored;
  return is_worth_it(fabric, *choice, all, knows_rates, why != nullptr ? why : &ignored);
}

TEST(IsWorthIt, WhereTheNetworkIsSlowerThanTheProcessors) {
  EXPECT_TRUE(worth(even_fabric(2, kGbit), reports(2)));
  EXPECT_TRUE(worth(even_fabric(8, 10 * kGbit), reports(8)));
}

TEST(IsWorthIt, NotWhereReducingDoesNotHideBehindTheNetwork) {
  std::string why;
  EXPECT_FALSE(worth(even_fabric(2, 100 * kGbit), reports(2), true, &why));
  EXPECT_NE(why.find("by NCCL's ring (11184 us here for TCP, 3355 us to reduce"), std::string::npos)
      << why;
  EXPECT_FALSE(worth(even_fabric(4, 100 * kGbit), reports(4)));
}

// Adding up comes on top of TCP, however many share the work.
TEST(IsWorthIt, NotWhereAddingUpTakesLongerThanTheNetwork) {
  std::vector<NodeReport> strong = reports(64);
  for (NodeReport& r : strong) r.speed.reduce_mbps = 150;
  EXPECT_FALSE(worth(even_fabric(64, 10 * kGbit), strong));
  for (NodeReport& r : strong) r.speed.reduce_mbps = 600;
  EXPECT_TRUE(worth(even_fabric(64, 10 * kGbit), strong));
}

// Ranks that stand in two racks in turn: NCCL's ring crosses the uplinks at every step.
TEST(IsWorthIt, AgainstTheRingAsNcclBuildsIt) {
  std::vector<NodeReport> slow = reports(8);
  for (NodeReport& r : slow) r.speed = {.reduce_mbps = 900, .stack_mbps = 900};
  Fabric fabric = even_fabric(8, 20 * kGbit);
  fabric.racks.assign(2, {"", 10 * kGbit, 10 * kGbit});
  for (int n = 0; n < 8; ++n) fabric.nodes[n].rack = n / 4;
  EXPECT_FALSE(worth(fabric, slow));
  for (int n = 0; n < 8; ++n) fabric.nodes[n].rack = n % 2;
  EXPECT_TRUE(worth(fabric, slow));
}

TEST(IsWorthIt, AgainstNcclsTreesWhereTheyAreFaster) {
  std::vector<NodeReport> fast = reports(256);
  for (NodeReport& r : fast) r.speed = {.reduce_mbps = 20'000, .stack_mbps = 20'000};
  std::string why;
  (void)worth(even_fabric(256, 100 * kGbit), fast, true, &why);
  EXPECT_NE(why.find("by NCCL's tree"), std::string::npos) << why;
  (void)worth(even_fabric(16, 10 * kGbit), reports(16), true, &why);
  EXPECT_NE(why.find("by NCCL's ring"), std::string::npos) << why;
}

TEST(IsWorthIt, OnAFastButUnevenNetwork) {
  Fabric fabric = even_fabric(8, 100 * kGbit);
  fabric.nodes[3].out_kbps = fabric.nodes[3].in_kbps = 5 * kGbit;
  EXPECT_TRUE(worth(fabric, reports(8)));
}

TEST(IsWorthIt, TheSlowestProcessorDecides) {
  std::vector<NodeReport> all = reports(8);
  EXPECT_TRUE(worth(even_fabric(8, 15 * kGbit), all));
  all[5].speed = {.reduce_mbps = 800, .stack_mbps = 800};
  EXPECT_FALSE(worth(even_fabric(8, 15 * kGbit), all));
}

TEST(IsWorthIt, RatesThatAreGuessesDoNotCount) {
  EXPECT_FALSE(worth(even_fabric(2, kGbit), reports(2), false));
  std::vector<NodeReport> fast = reports(2);
  for (NodeReport& r : fast) r.speed.reduce_mbps = 1'000'000;  // nothing to hide
  EXPECT_TRUE(worth(even_fabric(2, kGbit), fast, false));
}

TEST(IsWorthIt, WhereNothingWasMeasured) {
  std::vector<NodeReport> all = reports(2);
  all[1].speed = {};
  EXPECT_TRUE(worth(even_fabric(2, 100 * kGbit), all));
}

Verdict decide_with(const Knobs& knobs, const std::vector<NodeReport>& reports) {
  return decide(options_from(config_with(knobs)).collective.connect, reports);
}

TEST(Decide, FallingBackToNcclIsNoProblem) {
  const Knobs off = {{"RIFFLE_COLLNET", "off"}};
  EXPECT_EQ(decide_with(off, reports(3)).problem, "");
  EXPECT_EQ(decide_with(off, reports(3)).fallback_reason, "RIFFLE_COLLNET=off");
  const Knobs automatic = {{"RIFFLE_COLLNET", "auto"}};
  std::vector<NodeReport> virtual_nics = reports(2);
  for (NodeReport& r : virtual_nics) r.knows_rate = false;
  EXPECT_EQ(decide_with(automatic, virtual_nics).problem, "");
  EXPECT_NE(decide_with(automatic, virtual_nics).fallback_reason.find("RIFFLE_COLLNET=auto: "),
            std::string::npos);
  EXPECT_EQ(decide_with(automatic, reports(2)).fallback_reason, "");
  EXPECT_FALSE(decide_with(automatic, reports(2)).plans.empty());
  const Verdict survives =
      decide_with({{"RIFFLE_COLLNET", "auto"}, {"RIFFLE_ON_LOSS", "continue"}}, virtual_nics);
  EXPECT_EQ(survives.fallback_reason, "") << "on NCCL's ring no loss would be survived";
  EXPECT_FALSE(survives.plans.empty());
  const Verdict refused =
      decide_with({{"RIFFLE_COLLNET", "off"}, {"RIFFLE_ON_LOSS", "continue"}}, virtual_nics);
  EXPECT_NE(refused.fallback_reason.find("RIFFLE_ON_LOSS=continue"), std::string::npos);
  const Verdict on = decide_with({{"RIFFLE_COLLNET", "on"}}, virtual_nics);
  EXPECT_EQ(on.fallback_reason, "");
  EXPECT_FALSE(on.plans.empty());
}

// Levels of few nodes send fewer messages, which counts where these cost much.
TEST(Decide, PlansWithWhatAMessageCostsTheSlowestNode) {
  bool is_deterministic = false, is_shared = false;
  const auto planned = [&](std::int64_t message_ns, int threads, PlanBasis* basis) {
    ConnectOptions options =
        options_from(config_with({{"RIFFLE_COLLNET", "on"}})).collective.connect;
    options.threads = threads;
    options.is_deterministic = is_deterministic;
    std::vector<NodeReport> all = reports(32);
    for (NodeReport& r : all) r.rate_kbps = 25 * kGbit;
    for (NodeReport& r : all) r.speed.message_ns = 300;
    all[7].speed.message_ns = message_ns;
    for (NodeReport& r : all) r.share = is_shared ? MachineShare{"one", 2} : MachineShare{};
    const Verdict verdict = decide(options, all, nullptr, nullptr, basis);
    EXPECT_EQ(verdict.problem, "");
    const auto plans = decode_plan_set(verdict.plans.data(), verdict.plans.size());
    EXPECT_TRUE(plans) << plans.status().message();
    return plans ? plans->name : "";
  };
  PlanBasis basis;
  EXPECT_EQ(planned(300, 1, &basis), "grid 8x4");
  EXPECT_EQ(basis.message_ns, 500);
  EXPECT_EQ(planned(19'000, 1, &basis), "grid 4x4x2");
  EXPECT_EQ(basis.message_ns, 20'000);
  EXPECT_EQ(planned(1100, 2, &basis), "grid 8x4");
  EXPECT_EQ(basis.message_ns, 500);
  is_shared = true;
  (void)planned(300, 1, &basis);
  EXPECT_EQ(basis.message_ns, 5000) << "nodes that share two processors";
  is_shared = false;
  (void)planned(0, 1, &basis);  // not known
  EXPECT_EQ(basis.message_ns, kMessageNs);
  is_deterministic = true;
  (void)planned(300, 1, &basis);
  EXPECT_EQ(basis.message_ns, kMessageNs);
}

// No rates are known there, and processors are what is short.
TEST(Decide, NodesOfOneCrowdedMachineGetThePlanForSharedProcessors) {
  std::vector<NodeReport> all = reports(4);
  const auto planned = [&](const char* wish, const Fabric* probed, bool shares) {
    const Knobs knobs = {{"RIFFLE_COLLNET", wish}};
    PlanBasis basis;
    const Verdict verdict =
        decide(options_from(config_with(knobs)).collective.connect, all, probed, nullptr, &basis);
    EXPECT_EQ(basis.share_processors, shares);
    return decode_plan_set(verdict.plans.data(), verdict.plans.size())->name;
  };
  const auto put_on = [&](std::int64_t processors) {
    for (NodeReport& r : all) r.share = {"one", processors};
  };
  put_on(2);
  EXPECT_EQ(planned("on", nullptr, false), "direct") << "hosts of different names";
  for (NodeReport& r : all) r.host = "host";
  EXPECT_EQ(planned("on", nullptr, true), "double-tree");
  const Fabric probed = even_fabric(4, kGbit);
  EXPECT_EQ(planned("on", &probed, false), "direct") << "a network between them";
  EXPECT_EQ(planned("auto", nullptr, false), "direct") << "weighed against NCCL by the network";
  put_on(3);
  EXPECT_EQ(planned("on", nullptr, false), "direct") << "two or three threads a processor";
  all = reports(3);
  for (NodeReport& r : all) r.host = "host";
  put_on(1);
  EXPECT_EQ(planned("on", nullptr, false), "direct") << "three nodes, six threads a processor";
}

TEST(Decide, SparseSumsThatAreAskedForAreNotLeftToNccl) {
  std::vector<NodeReport> virtual_nics = reports(2);
  for (NodeReport& r : virtual_nics) r.knows_rate = false;
  for (const auto& [wish, falls_back] : {std::pair{"0.01", false}, std::pair{"auto:0.01", true}}) {
    const Verdict verdict = decide_with({{"RIFFLE_SPARSE", wish}}, virtual_nics);
    EXPECT_EQ(verdict.problem, "");
    EXPECT_EQ(!verdict.fallback_reason.empty(), falls_back) << wish;
  }
}

// Moshpit with all levels: an exact plan, no schedule; the best one where nodes fill no grid.
TEST(Decide, AllLevelsOfMoshpitAreAGridWhereThereIsOne) {
  const Knobs knobs = {
      {"RIFFLE_COLLNET", "on"}, {"RIFFLE_SYNC", "moshpit"}, {"RIFFLE_MOSHPIT_LEVELS", "all"}};
  for (const auto& [nodes, is_grid] : {std::pair{8, true}, std::pair{7, false}}) {
    const Verdict verdict = decide_with(knobs, reports(nodes));
    EXPECT_EQ(verdict.problem, "") << nodes;
    const auto plans = decode_plan_set(verdict.plans.data(), verdict.plans.size());
    ASSERT_TRUE(plans) << plans.status().message();
    EXPECT_EQ(plans->name.starts_with("grid"), is_grid) << plans->name;
    EXPECT_TRUE(plans->relaxed.is_empty());
  }
}

// Two racks of four whose uplinks carry half of a node's rate.
Fabric two_racks() {
  Fabric fabric = even_fabric(8, 400'000);
  fabric.racks.assign(2, {"", 200'000, 200'000});
  for (std::size_t i = 0; i < 8; ++i) fabric.nodes[i].rack = static_cast<int>(i % 2);
  return fabric;
}

SyncSettings with_mode(SyncMode mode) {
  SyncSettings sync;
  sync.mode = mode;
  return sync;
}

double groups_gain(const Fabric& fabric, const RelaxedPlans& former, const RelaxedPlans& others) {
  return relaxed_step_us(fabric, former) / relaxed_step_us(fabric, others);
}

// One replanning interval with steady rates, as node 0 takes it.
void follow(const Fabric& live, const SyncSettings& sync, PlanSet* current) {
  Weighed w = *weigh(live, *current, 32 << 20, {});
  RelaxedPlans others = relaxed_plans(live, sync, false);
  const double gain = groups_gain(live, current->relaxed, others);
  choose_groups(*current, std::move(others), gain, &w);
  if (w.gain() >= Hysteresis::kSmallGain) *current = w.choice.plans;
}

// A neighbour slows nodes down and leaves again. Exact plans of several kinds take as long on these
// racks, so the one made for the slow nodes may stay, but its groups may not.
TEST(RelaxedPlans, FollowTheNetworkBackWhereTheExactPlanStays) {
  const Fabric calm = two_racks();
  const SyncSettings sync = with_mode(SyncMode::kDsSync);
  PlanSet first = plan(calm, 32 << 20, {})->plans;
  first.relaxed = relaxed_plans(calm, sync, false);
  for (const std::int64_t kbps : {120'000, 200'000, 320'000}) {
    Fabric contended = calm;
    contended.nodes[0].out_kbps = contended.nodes[0].in_kbps = kbps;
    contended.racks.assign(2, {"", 220'000, 220'000});  // rates that are measured wander
    PlanSet current = first;
    follow(contended, sync, &current);
    EXPECT_GT(groups_gain(calm, current.relaxed, first.relaxed), 1.3) << kbps;
    EXPECT_LT(weigh(calm, current, 32 << 20, {})->gain(), Hysteresis::kSmallGain) << kbps;
    const PlanSet slow = current;
    follow(calm, sync, &current);
    EXPECT_EQ(current.lanes, slow.lanes) << kbps;
    EXPECT_LT(groups_gain(calm, current.relaxed, first.relaxed), Hysteresis::kClearGain) << kbps;
  }
}

TEST(RelaxedPlans, ThoseInForceStayWhereThereAreNoOthers) {
  const Fabric calm = two_racks();
  Fabric contended = calm;
  contended.nodes[3].out_kbps = contended.nodes[3].in_kbps = 100'000;
  PlanSet current = plan(calm, 32 << 20, {})->plans;
  current.relaxed = relaxed_plans(calm, with_mode(SyncMode::kDsSync), false);
  Weighed w = *weigh(contended, current, 32 << 20, {});
  ASSERT_NE(w.choice.plans.lanes, current.lanes);
  choose_groups(current, {}, 1, &w);
  EXPECT_EQ(w.choice.plans.relaxed, current.relaxed);
  EXPECT_DOUBLE_EQ(w.groups_gain, 1);
}

TEST(RelaxedPlans, AreNoneInExactMode) {
  EXPECT_TRUE(relaxed_plans(two_racks(), with_mode(SyncMode::kExact), true).is_empty());
}

// Ranks in turn over two racks whose uplinks carry half of a node's rate, then rack by rack.
TEST(OrderAdvice, OnlyWhereTheOrderOfRanksCostsMuch) {
  Fabric fabric = even_fabric(8, 10 * kGbit);
  EXPECT_EQ(order_advice(fabric), "");
  EXPECT_EQ(order_advice(even_fabric(1, kGbit)), "");
  fabric.racks.assign(2, {"", 5 * kGbit, 5 * kGbit});
  for (int n = 0; n < 8; ++n) fabric.nodes[n].rack = n % 2;
  EXPECT_EQ(order_advice(fabric),
            "the order of ranks crosses racks 8 times where 2 would do: NCCL's own rings "
            "(reduce-scatter, all-gather) take 4.0 times as long as in the best order, which "
            "`riffle order` prints");
  for (int n = 0; n < 8; ++n) fabric.nodes[n].rack = n / 4;
  EXPECT_EQ(order_advice(fabric), "");
  for (int n = 0; n < 8; ++n) fabric.nodes[n].rack = n % 2;
  fabric.racks.assign(2, {"", 40 * kGbit, 40 * kGbit});  // no bottleneck
  EXPECT_EQ(order_advice(fabric), "");
}

TEST(MachineShare, CountsWhoIsOnTheSameMachine) {
  const MachineShare own = share_of_machine();
  EXPECT_GE(own.machine.size(), 30U) << own.machine;
  EXPECT_GE(own.processors, 1);
  EXPECT_EQ(crowding({}), 1);
  EXPECT_EQ(crowding({{"a", 64}, {"b", 64}, {"c", 2}}), 1);
  EXPECT_EQ(crowding({{"a", 2}, {"a", 2}, {"b", 64}, {"a", 2}}), 3);
  EXPECT_EQ(crowding(std::vector<MachineShare>(8, {"a", 2})), 8);
  EXPECT_EQ(crowding({{"", 2}, {"", 2}, {"a", 0}, {"a", 0}}), 1);  // unknown
}

TEST(MachineSpeed, IsMeasured) {
  const MachineSpeed speed = measure_machine();
  for (const std::int64_t mbps : {speed.reduce_mbps, speed.stack_mbps}) {
    EXPECT_GT(mbps, 10);
    EXPECT_LT(mbps, 1'000'000);
  }
  EXPECT_GT(speed.message_ns, 50);
  EXPECT_LT(speed.message_ns, 1'000'000);
}

TEST(MessagePrice, IsAStepNearWhatTheSlowestNodeMeasured) {
  const auto price = [](std::vector<std::int64_t> measured_ns) {
    std::vector<MachineSpeed> nodes;
    for (const std::int64_t ns : measured_ns) nodes.push_back({.message_ns = ns});
    return message_price_ns(nodes);
  };
  EXPECT_EQ(price({800, 1100, 700}), 1000);
  EXPECT_EQ(price({1300, 1100}), 1000);
  EXPECT_EQ(price({1500, 1100}), 2000);
  EXPECT_EQ(price({1, 30}), 500);
  EXPECT_EQ(price({1000, 1'000'000}), 20'000);
  EXPECT_EQ(price({std::numeric_limits<std::int64_t>::max()}), 20'000);
  // Not known of one, or of any.
  EXPECT_EQ(price({800, 0}), kMessageNs);
  EXPECT_EQ(price({800, -5}), kMessageNs);
  EXPECT_EQ(price({}), kMessageNs);
}

}  // namespace
}  // namespace riffle::decision_test
