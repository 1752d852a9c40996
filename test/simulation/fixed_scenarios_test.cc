// Scenarios that were broken once, each with all of its parameters: a seed draws something else as
// soon as the drawing changes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/simulation/play.h"
#include "topology/plan/planner.h"

namespace riffle::sim::fixed_scenarios_test {
namespace {

Scenario job_without_rack(const std::vector<std::int64_t>& kbps, std::int64_t latency_us,
                          const PlanOptions& plan_options, const std::vector<int>& half_in = {}) {
  Scenario s;
  s.fabric = even_fabric(static_cast<int>(kbps.size()), kbps.front());
  s.fabric.latency_us = latency_us;
  for (std::size_t n = 0; n < kbps.size(); ++n) {
    s.fabric.nodes[n].out_kbps = s.fabric.nodes[n].in_kbps = kbps[n];
  }
  for (const int n : half_in) s.fabric.nodes[n].in_kbps /= 2;
  s.plans = plan(s.fabric, 1 << 20, plan_options)->plans;
  s.network.peer_timeout_ns = s.session.peer_timeout_ns = 3'000'000'000;
  s.network.poisons = true;
  s.session.connect_timeout_ns = 5'000'000'000;
  s.session.engine.max_operations = 8;
  s.session.engine.has_blocks = false;
  return s;
}

Fault pause(int node, std::uint64_t when_ns, std::uint64_t length_ns) {
  return {.kind = Fault::Kind::kPause, .when_ns = when_ns, .node = node, .length_ns = length_ns};
}
Fault break_link(int node, int other, std::uint64_t when_ns) {
  return {.kind = Fault::Kind::kBreak, .when_ns = when_ns, .node = node, .other = other};
}

// While a node sleeps, others report a broken connection and end. When it wakes what they said
// waits for its processor, in front of their end, which must not overtake it.
TEST(FixedScenario, TheSleeperOfTwentyThreeHearsWhatTheOthersReported) {
  Scenario s = job_without_rack(
      {1'456'023, 364'005,   728'011, 728'011,   728'011, 1'456'023, 364'005, 182'002,
       1'456'023, 182'002,   182'002, 1'456'023, 364'005, 728'011,   364'005, 1'456'023,
       182'002,   1'456'023, 364'005, 182'002,   182'002, 728'011,   728'011},
      20, {.max_lanes = 4, .seed = 8'978'270'934'482'283'296u, .only = "tree"},
      {5, 8, 11, 13, 14, 16});
  s.seed = 4883;
  s.network.seed = 13'315'824'477'895'557'547u;
  s.network.jitter_ns = 18'883;
  s.network.streams = 1;
  s.network.tick_ns = 100;
  s.network.byte_cpu_ns = 0.2;
  s.network.detect_ns = 37'772'329;
  s.session.engine.piece_bytes = 2048;
  s.session.engine.chunk_bytes = 6144;
  s.session.engine.window_bytes = 16384;
  s.session.engine.max_chunks = 8;
  s.most_think_ns = 3'995'287;
  s.calls = {{.type = DataType::kUint8, .count = 30, .in_place = false}};
  s.faults = {pause(7, 1'745'777, 303'765'931), break_link(9, 12, 2'846'567)};
  EXPECT_EQ(play(s).broken, "") << describe(s);
}

TEST(FixedScenario, TheSleeperOfEightHearsWhatTheOthersReported) {
  Scenario s =
      job_without_rack({758'255, 94'781, 94'781, 379'127, 189'563, 94'781, 94'781, 379'127}, 36,
                       {.max_lanes = 1, .only = "ring"});
  s.seed = 13340;
  s.network.seed = 15'053'064'243'540'333'141u;
  s.network.jitter_ns = 212'233;
  s.network.streams = 3;
  s.network.frame_cpu_ns = 10'000;
  s.network.detect_ns = 12'741'867;
  s.session.engine.piece_bytes = s.session.engine.chunk_bytes = 8192;
  s.session.engine.window_bytes = 1024;
  s.session.engine.max_chunks = 2;
  s.outstanding = 3;
  s.most_think_ns = 337'433;
  s.has_lengths = true;
  s.calls = {{.type = DataType::kFloat32, .count = 569, .is_rounded = true},
             {.type = DataType::kUint8, .count = 2, .in_place = false},
             {.type = DataType::kInt32, .count = 7},
             {.type = DataType::kUint8, .count = 31'229, .in_place = false}};
  s.faults = {pause(2, 6'664'359, 99'066'695), break_link(6, 4, 7'769'204)};
  EXPECT_EQ(play(s).broken, "") << describe(s);
}

TEST(FixedScenario, TheSleeperOfThirteenHearsWhatTheOthersReported) {
  Scenario s = job_without_rack(
      {333'047, 1'332'190, 1'332'190, 166'523, 1'332'190, 166'523, 666'095, 1'332'190, 333'047,
       666'095, 1'332'190, 666'095, 666'095},
      7, {.max_lanes = 5, .seed = 14'448'757'380'244'993'998u, .only = "halving-doubling"});
  s.seed = 19355;
  s.network.seed = 17'375'018'204'752'458'998u;
  s.network.jitter_ns = 1'857;
  s.network.streams = 2;
  s.network.tick_ns = 100;
  s.network.frame_cpu_ns = 8'474;
  s.network.detect_ns = 29'931'168;
  s.session.engine.piece_bytes = 8192;
  s.session.engine.chunk_bytes = 16384;
  s.session.engine.window_bytes = 1024;
  s.session.engine.max_chunks = 13;
  s.most_pause_before_close_ns = 2'000'000'000;
  s.calls = {{.type = DataType::kUint8, .count = 3},
             {.type = DataType::kFloat64, .count = 15, .in_place = false},
             {.type = DataType::kFloat32, .count = 1, .in_place = false},
             {.type = DataType::kFloat64, .count = 668},
             {.type = DataType::kUint8, .count = 7}};
  s.faults = {pause(0, 771'783, 28'189'998), break_link(3, 8, 2'573'796)};
  EXPECT_EQ(play(s).broken, "") << describe(s);
}

}  // namespace
}  // namespace riffle::sim::fixed_scenarios_test
