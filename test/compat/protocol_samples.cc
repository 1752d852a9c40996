// Messages that only running agreements make: whole ones run, and what their nodes sent first
// of each kind is looked at. Their receivers took it, or the agreement would not have come about.
#include "plugin/collective/adapt/plan_switch.h"
#include "plugin/collective/elastic/regroup.h"
#include "test/compat/samples.h"
#include "test/plugin/collective/elastic/regroup_world.h"

namespace riffle::compat {
namespace {

// Two nodes change their plan.
Samples change_of_a_plan() {
  std::map<std::uint32_t, Bytes> sent;
  std::vector<std::unique_ptr<PlanSwitch>> nodes(2);
  std::vector<std::uint64_t> used;
  for (int rank = 0; rank < 2; ++rank) {
    nodes[rank] = std::make_unique<PlanSwitch>(
        rank, 2,
        PlanSwitch::Steps{
            .send =
                [&, rank](int peer, std::uint32_t kind, const Bytes& message) {
                  sent.emplace(kind, message);
                  EXPECT_TRUE(nodes[peer]->received(rank, kind, message));
                },
            .prepare = [](const PlanSwitch::Order&,
                          const std::function<void(Status)>& prepared) { prepared(Status::ok()); },
            .hold = [rank](std::uint64_t) { return static_cast<std::uint64_t>(1000 + rank); },
            .use = [&](std::uint64_t seq) { used.push_back(seq); },
            .drop = [] {},
            .decided = [](const Result<std::uint64_t>&) {}});
  }
  nodes[0]->begin({.plans = {1, 2, 3}, .digest = 0x0405060708090a0b, .horizon_ns = 50'000'000});
  EXPECT_EQ(used, (std::vector<std::uint64_t>{1001, 1001}));
  constexpr std::uint32_t kFirst = PlanSwitch::kPlanKinds;
  return {{"plan_switch_prepare", sent[kFirst], {}},
          {"plan_switch_prepared", sent[kFirst + 1], {}},
          {"plan_switch_decision", sent[kFirst + 2], {}}};
}

// Of four nodes one is lost, and one of the others sent away afterwards.
Samples loss_of_nodes() {
  testing::World world(4, 1);
  world.kill(3, 0);
  world.at(1'000'000'000, [&] { world.expel(0, {1}); });
  world.run();
  EXPECT_EQ(world.going_on(), (testing::Nodes{0, 2}));
  Samples all;
  for (const auto& [kind, name] :
       std::map<std::uint32_t, std::string>{{Regroup::kState, "regroup_state"},
                                            {Regroup::kVerdict, "regroup_verdict"},
                                            {Regroup::kAccepted, "regroup_accepted"},
                                            {Regroup::kCommit, "regroup_commit"},
                                            {Regroup::kExcluded, "regroup_excluded"},
                                            {Regroup::kGone, "regroup_gone"}}) {
    all.push_back({name, world.first_sent[kind], {}});
    EXPECT_FALSE(all.back().written.empty()) << name;
  }
  return all;
}

}  // namespace

Samples protocol_samples() {
  Samples all = change_of_a_plan();
  for (const Sample& s : loss_of_nodes()) all.push_back(s);
  return all;
}

}  // namespace riffle::compat
