// tools/plan: what people read about a relaxed mode.
#include "tools/plan/policy_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace riffle::tools::policy_view_test {
namespace {

Fabric racks8() {
  Fabric fabric = even_fabric(8, 400'000);
  fabric.racks = {{"left", 200'000, 200'000}, {"right", 200'000, 200'000}};
  for (int n = 0; n < 8; ++n) fabric.nodes[static_cast<std::size_t>(n)].rack = n % 2;
  return fabric;
}

struct Seen {
  Fabric fabric;
  ScheduleChoice choice;
  PolicyQuestion question;

  Seen(Fabric f, ScheduleMode mode, const ShadowSettings& shadow = {}, int round_steps = 1)
      : fabric(std::move(f)) {
    question.mode = mode;
    question.shadow = shadow;
    question.options.bytes = 32 << 20;
    question.options.round_steps = round_steps;
    if (mode == ScheduleMode::kShadowSync) put_into(shadow, &question.options);
    const auto chosen = choose_schedule(fabric, mode, question.options);
    EXPECT_TRUE(chosen) << chosen.status().message();
    if (chosen) choice = *chosen;
  }
  PolicyView view() const { return {&fabric, &choice, question}; }
  std::string text() const { return to_text(view(), Colours(stdout)); }
};

TEST(PolicyView, SaysSpeedMixingAndGroups) {
  Seen seen(racks8(), ScheduleMode::kDsSync);
  seen.question.momentum = 0.9;
  const std::string text = seen.text();
  for (const char* part :
       {"ds_sync, ", " x as fast as exact sums", "contraction", "deviation of a node",
        "every 64th step is exact", "RIFFLE_OPTIMIZER=sgd", "step  1: ", "chosen; ",
        "under that momentum", "4 random groups of 8"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(PolicyView, FullStepsCount) {
  Seen seen(racks8(), ScheduleMode::kDsSync);
  const double step_us = seen.choice.quality.time_us, exact_us = seen.choice.exact_us;
  seen.question.full_every = 10;
  EXPECT_NEAR(seen.view().mean_us(), 0.9 * step_us + 0.1 * exact_us, 1e-6 * exact_us);
  EXPECT_NEAR(seen.view().gain(), exact_us / (0.9 * step_us + 0.1 * exact_us), 1e-9);
  seen.question.full_every = 0;
  EXPECT_DOUBLE_EQ(seen.view().mean_us(), step_us);
}

TEST(PolicyView, FormulasHaveTheJobsOwnNumbers) {
  Seen grid(even_fabric(16, 1'000'000), ScheduleMode::kMoshpit);
  ASSERT_EQ(grid.choice.dimensions, (std::vector<int>{2, 2, 2, 2}));
  const auto formulas = grid.view().formulas();
  ASSERT_FALSE(formulas.empty());
  EXPECT_DOUBLE_EQ(formulas[0].second, 0.6875);
  EXPECT_NEAR(formulas[0].second, grid.choice.quality.deviation, 1e-6);
  Seen shadow(racks8(), ScheduleMode::kShadowSync);
  shadow.question.options.round_steps = 4;
  EXPECT_DOUBLE_EQ(shadow.view().formulas()[0].second, 3.5);
}

TEST(PolicyView, NamesTheRuleOfShadowSync) {
  for (const ShadowVariant variant : {ShadowVariant::kDelta, ShadowVariant::kInterpolation,
                                      ShadowVariant::kBmuf, ShadowVariant::kFir}) {
    const std::string name = name_of(variant);
    Seen seen(racks8(), ScheduleMode::kShadowSync, {.variant = variant, .pull = 0.25}, 4);
    EXPECT_NE(seen.view().headline().find("shadow_sync by the rule " + name), std::string::npos);
    const std::string text = seen.text();
    EXPECT_NE(text.find(describe(seen.question.shadow, 8)), std::string::npos) << text;
    EXPECT_EQ(text.find("speed of the nodes' mean") != std::string::npos, has_pull(variant))
        << text;
    EXPECT_EQ(text.find("by the exact plan") != std::string::npos, is_over_all(variant)) << text;
    const auto json = nlohmann::json::parse(to_json(seen.view()));
    EXPECT_EQ(json["rule"], describe(seen.question.shadow, 8));
    if (is_over_all(variant)) {
      EXPECT_EQ(seen.choice.table.name, "all nodes");
      EXPECT_EQ(seen.choice.candidates.size(), 1u);
      EXPECT_DOUBLE_EQ(seen.view().mean_us(), seen.choice.exact_us);
    }
    if (has_pull(variant)) {  // pull 1/4: 4 (3/4)^2 / (1/4 7/4) 7/8
      EXPECT_NEAR(seen.view().formulas()[0].second, 4.5, 1e-9) << name;
    }
    if (variant == ShadowVariant::kBmuf) {  // all meet in every round: as the formula has it
      EXPECT_NEAR(seen.choice.quality.deviation, 4.5, 1e-3);
    }
  }
}

TEST(PolicyView, JsonIsTheTable) {
  const Seen seen(racks8(), ScheduleMode::kDsSync);
  const auto json = nlohmann::json::parse(to_json(seen.view()));
  const ScheduleTable& table = seen.choice.table;
  EXPECT_EQ(json["policy"], "ds_sync");
  ASSERT_EQ(json["table"].size(), static_cast<std::size_t>(table.steps));
  ASSERT_EQ(json["table"][0].size(), static_cast<std::size_t>(table.lanes));
  EXPECT_EQ(json["table"][3][2], table.table[static_cast<std::size_t>(3 * table.lanes + 2)]);
  EXPECT_EQ(json["partitions"].size(), table.partitions.size());
  EXPECT_EQ(json["candidates"].size(), seen.choice.candidates.size());
  EXPECT_EQ(json["chosen"]["deviation"], seen.choice.quality.deviation);
}

}  // namespace
}  // namespace riffle::tools::policy_view_test
