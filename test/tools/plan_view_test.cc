// tools/plan: what people read first about a plan.
#include "tools/plan/plan_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace riffle::tools::plan_view_test {
namespace {

Fabric straggler8() {
  Fabric fabric = even_fabric(8, 400'000);
  fabric.nodes[3].out_kbps = fabric.nodes[3].in_kbps = 100'000;
  return fabric;
}

Fabric racks8() {
  Fabric fabric = even_fabric(8, 400'000);
  fabric.racks = {{"left", 200'000, 200'000}, {"right", 200'000, 200'000}};
  for (int n = 0; n < 8; ++n) fabric.nodes[n].rack = n % 2;
  return fabric;
}

// The first line of the text output.
std::string first_line(const Fabric& fabric) {
  const auto choice = plan(fabric, 32 << 20, {});
  EXPECT_TRUE(choice.is_ok());
  const PlanView view(fabric, *choice, 32 << 20);
  const std::string text = to_text(view, Colours(stdout));
  return text.substr(0, text.find('\n'));
}

TEST(PlanView, FirstLineNamesTheSlowLinkOfStraggler8) {
  const std::string line = first_line(straggler8());
  EXPECT_NE(line.find("node3"), std::string::npos) << line;
  EXPECT_NE(line.find("limits: 32 MiB at 100 Mbit/s"), std::string::npos) << line;
}

TEST(PlanView, FirstLineNamesTheUplinkOfRacks8) {
  const std::string line = first_line(racks8());
  EXPECT_NE(line.find("link of rack "), std::string::npos) << line;
  EXPECT_NE(line.find("at 200 Mbit/s"), std::string::npos) << line;
}

// The planner's reason, which the log and the record have, would say the first line again.
TEST(PlanView, SecondLineSaysWhatTheFirstDoesNot) {
  const Fabric fabric = racks8();
  const auto choice = plan(fabric, 32 << 20, {});
  ASSERT_TRUE(choice.is_ok());
  const std::string text = to_text(PlanView(fabric, *choice, 32 << 20), Colours(stdout));
  const std::string second = text.substr(text.find('\n') + 1);
  EXPECT_TRUE(second.starts_with(choice->plans.name + " for 32 MiB on 8 nodes")) << text;
  EXPECT_EQ(text.find("sets the pace"), std::string::npos) << text;
  EXPECT_EQ(text.find("33554432"), std::string::npos) << text;
  EXPECT_NE(choice->reason.find(" for 32 MiB on 8 nodes"), std::string::npos) << choice->reason;
}

TEST(PlanView, LinkTimesAgreeWithTheLimit) {
  for (const Fabric& fabric : {straggler8(), racks8()}) {
    const auto choice = plan(fabric, 64 << 20, {});
    ASSERT_TRUE(choice.is_ok());
    const PlanView view(fabric, *choice, 64 << 20);
    // Several links may be equally slow; the first is as slow as the one that is named.
    for (const LinkTime& link : view.links) {
      if (link.name != choice->candidates.front().limit) continue;
      EXPECT_NEAR(link.time_us, view.links.front().time_us, 1e-3 * link.time_us);
      EXPECT_LE(link.time_us, choice->time_us);
      EXPECT_GE(link.time_us, 0.9 * choice->bound_us);
    }
  }
}

TEST(PlanView, JsonIsComplete) {
  const Fabric fabric = racks8();
  const auto choice = plan(fabric, 32 << 20, {});
  ASSERT_TRUE(choice.is_ok());
  const PlanView view(fabric, *choice, 32 << 20);
  const auto json = nlohmann::json::parse(to_json(view));
  EXPECT_EQ(json["nodes"].size(), 8u);
  EXPECT_EQ(json["links"].size(), 8u * 2 + 2 * 2);
  EXPECT_EQ(json["candidates"][0]["name"], json["chosen"]);
}

TEST(PlanView, ASingleNodeHasNoBound) {
  const Fabric fabric = even_fabric(1, 1000);
  const auto choice = plan(fabric, 1000, {});
  ASSERT_TRUE(choice.is_ok());
  EXPECT_FALSE(to_text(PlanView(fabric, *choice, 1000), Colours(stdout)).empty());
}

}  // namespace
}  // namespace riffle::tools::plan_view_test
