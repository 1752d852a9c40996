// tools/explain: a model error is named as such, from records made up here.
#include "tools/explain/prediction.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plugin/collective/adapt/plan_trials.h"
#include "tools/explain/explanation.h"
#include "tools/explain/limit.h"

namespace riffle::tools::prediction_test {
namespace {

static_assert(kModelError == PlanTrials::kWrong);

constexpr std::uint64_t kCallBytes = 32 << 20;
constexpr double kPredictedS = 1 / kWirePerPayload;  // so that a call of a second takes as long

PlanEvent plan_at(double t, double predicted_s, const char* trigger = "connect") {
  PlanEvent plan{.t = t, .cause = trigger, .reason = "because", .name = "ring"};
  plan.fabric = even_fabric(3, 400'000);
  plan.trigger = trigger;
  plan.predicted_us = 1e6 * predicted_s;
  plan.predicted_bytes = kCallBytes;
  return plan;
}

// Three nodes, connected at second 100; a call of 32 MiB and a sample every two seconds.
class MadeRecord {
 public:
  MadeRecord() {
    comm_.hosts = {"node0", "node1", "node2"};
    for (int rank = 0; rank < 3; ++rank) node(rank).connected_t = t_;
    plan(kPredictedS);
  }
  NodeRecord& node(int rank) { return comm_.nodes[rank]; }
  void plan(double predicted_s, const char* trigger = "connect") {
    node(0).plans.push_back(plan_at(t_, predicted_s, trigger));
  }
  // node0 begins before the others, and waits.
  void calls(int n, double seconds, std::uint64_t bytes = kCallBytes) {
    for (int i = 0; i < n; ++i) {
      t_ += 2;
      for (int rank = 0; rank < 3; ++rank) {
        NodeRecord& one = node(rank);
        Sample s = one.samples.empty() ? Sample{} : one.samples.back();
        s.t = t_;
        s.active_us += static_cast<std::uint64_t>(1e6 * (rank == 0 ? seconds + 0.3 : seconds));
        ++s.bursts;
        s.sizes[bytes].count += 1;
        s.sizes[bytes].bytes += bytes;
        one.samples.push_back(s);
      }
    }
  }
  Explanation explained() const {
    JobRecord job;
    job.comms["00000000000000aa"] = comm_;
    return explain(job).front();
  }
  double x() const { return explained().x_predicted.value_or(0); }
  bool names_error() const { return explained().headline.find("model error") != std::string::npos; }

 private:
  double t_ = 100;
  CommRecords comm_;
};

TEST(Prediction, AModelErrorIsNamed) {
  MadeRecord record;
  record.calls(5, 1.8);
  const Explanation e = record.explained();
  ASSERT_TRUE(e.x_predicted.has_value());
  EXPECT_NEAR(*e.x_predicted, 1.8, 0.001);
  const char* const wanted =
      "model error: all-reduces take 1.80 x what the plan was predicted to take";
  EXPECT_NE(e.headline.find(wanted), std::string::npos) << e.headline;
  EXPECT_NE(to_html({e}).find(wanted), std::string::npos);
  const auto json = nlohmann::json::parse(to_json({e}))["explanations"][0];
  EXPECT_NEAR(json["x_predicted"], 1.8, 0.001);
}

TEST(Prediction, WhatIsNearItIsNone) {
  MadeRecord record;
  record.calls(5, 1.2);
  EXPECT_NEAR(record.x(), 1.2, 0.001);
  EXPECT_FALSE(record.names_error());
}

TEST(Prediction, ThePlanInForceIsMeantAlone) {
  MadeRecord wrong_at_first;
  wrong_at_first.calls(5, 2);
  wrong_at_first.plan(kPredictedS, "rates");
  wrong_at_first.calls(5, 1);
  EXPECT_NEAR(wrong_at_first.x(), 1, 0.001);
  EXPECT_FALSE(wrong_at_first.names_error());

  MadeRecord promises_too_much;
  promises_too_much.calls(5, 1);
  promises_too_much.plan(kPredictedS / 2, "rates");
  EXPECT_FALSE(promises_too_much.explained().x_predicted.has_value());  // it has not run
  promises_too_much.calls(5, 1);
  EXPECT_NEAR(promises_too_much.x(), 2, 0.001);
  EXPECT_TRUE(promises_too_much.names_error());
}

TEST(Prediction, WhatCannotBeComparedIsNoModelError) {
  const auto is_compared = [](const std::function<void(MadeRecord&)>& change, int bursts = 0) {
    MadeRecord record;
    record.calls(5, 1.8);
    record.node(0).samples.back().bursts += static_cast<std::uint64_t>(bursts);
    change(record);
    EXPECT_EQ(record.names_error(), record.explained().x_predicted.has_value());
    return record.names_error();
  };
  EXPECT_TRUE(is_compared([](MadeRecord&) {}));
  EXPECT_FALSE(is_compared([](MadeRecord&) {}, 1000));  // small sums
  EXPECT_FALSE(is_compared([](MadeRecord& r) { r.node(1).samples.back().others = 1; }));
  EXPECT_FALSE(is_compared([](MadeRecord& r) { r.node(0).plans[0].predicted_us = 0; }));
  const auto with_modes = [&](double first_t, double last_t) {
    return is_compared([&](MadeRecord& r) {
      r.node(1).modes.push_back({.t = first_t, .mode = "ds_sync"});
      r.node(1).modes.push_back({.t = last_t, .mode = "exact"});
    });
  };
  EXPECT_FALSE(with_modes(103, 105));
  EXPECT_FALSE(with_modes(99, 105));
  EXPECT_TRUE(with_modes(98, 99));  // before all that is looked at
}

TEST(Prediction, ATrialIsForAModelError) {
  MadeRecord record;
  record.calls(5, 1.8);
  record.plan(kPredictedS, "trial");
  record.calls(5, 1);
  const Explanation e = record.explained();
  EXPECT_FALSE(record.names_error());
  const std::string wanted = "because of model error (trial): ring";
  EXPECT_NE(to_text(e, Colours(stdout)).find(wanted), std::string::npos)
      << to_text(e, Colours(stdout));
  EXPECT_NE(to_html({e}).find("model error (trial)"), std::string::npos);
  const auto plans = nlohmann::json::parse(to_json({e}))["explanations"][0]["plans"];
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0]["trigger"], "connect");
  EXPECT_EQ(plans[1]["trigger"], "trial");
}

}  // namespace
}  // namespace riffle::tools::prediction_test
