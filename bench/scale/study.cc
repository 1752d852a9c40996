// riffle_scale: one all-reduce by one plan on one large platform, simulated by SimGrid's flow-level
// TCP model and predicted by our cost model. Prints one JSON object. bench/scale/run makes the
// table of docs/scale.md from many of them: SimGrid simulates one platform per process.
//
// SimGrid decides how flows share links on the real routes. Time of the steady state: everything
// the plan sends at once. Time before it: one chunk alone, stage by stage; a chunk of
// kChunkBytes is under way before the next stage begins. How stages overlap in the engine is not
// SimGrid's to tell: test/sim has the production engine for that.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <simgrid/s4u.hpp>

#include "bench/scale/flows.h"
#include "bench/scale/platform.h"
#include "topology/plan/planner.h"

namespace {

namespace sg = simgrid::s4u;
using riffle::scale::Flow;
using riffle::scale::Flows;
using riffle::scale::Platform;

constexpr double kChunkBytes = 256 << 10;

// Ends of flows, counted by a signal: nobody waits for each of them.
struct Ends {
  std::size_t flows = 0;
  double last_s = 0;
};
Ends ends;

double seconds_of(const Platform& p, const Flows& flows) {
  constexpr double kPollSeconds = 1e-3;  // of simulated time
  const double begin = sg::Engine::get_clock();
  ends = {0, begin};
  for (const Flow& f : flows) {
    const auto bytes = static_cast<std::uint64_t>(std::max(1.0, f.bytes));
    sg::Comm::sendto_init(p.hosts[f.from], p.hosts[f.to])->set_payload_size(bytes)->detach();
  }
  while (ends.flows < flows.size()) sg::this_actor::sleep_for(kPollSeconds);
  return ends.last_s - begin;
}

struct Simulated {
  double steady_s = 0, chunk_s = 0, total_s = 0;
  std::size_t flows = 0;
};

Simulated simulate(sg::Engine& engine, const Platform& p, const riffle::PlanSet& plans,
                   double bytes) {
  Simulated result;
  sg::Link::on_communication_state_change_cb([](const auto&, auto) {
    ++ends.flows;
    ends.last_s = sg::Engine::get_clock();
  });
  const double chunk = std::min(bytes, kChunkBytes);
  sg::Actor::create("conductor", p.hosts[0], [&] {
    const Flows flows = riffle::scale::all_flows(plans, bytes);
    result.flows = flows.size();
    result.steady_s = seconds_of(p, flows);
    for (const auto& stage : riffle::scale::stages(plans.lanes[0], chunk)) {
      result.chunk_s += seconds_of(p, stage.flows) * stage.repeats;
    }
  });
  engine.run();
  result.total_s =
      result.steady_s + std::max(0.0, result.chunk_s - result.steady_s * chunk / bytes);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);  // takes its own options away first
  // Links carry exactly their rate, latencies are what they say, windows are no limit: the
  // planner's rates are payload rates too.
  for (const char* setting : {"network/model:CM02", "network/crosstraffic:0",
                              "network/TCP-gamma:1e12", "network/weight-S:1e12"}) {
    sg::Engine::set_config(setting);
  }
  CLI::App app("One all-reduce on a large platform: SimGrid's time and Riffle's prediction");
  std::string kind = "fat-tree-4", only;
  int nodes = 1024, lanes = 8;
  std::uint64_t bytes = 64 << 20;
  app.add_option("--platform", kind, "fat-tree-1, fat-tree-4, fat-tree-8, dragonfly, multi-site");
  app.add_option("--nodes", nodes, "A power of two from 64 to 16384");
  app.add_option("--bytes", bytes, "Of the buffer")->transform(CLI::AsSizeValue(false));
  app.add_option("--plan", only, "ring, halving-doubling, ...; empty: the planner's choice");
  app.add_option("--lanes", lanes, "Shuffled variants")->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);

  const riffle::Result<Platform> platform = riffle::scale::build_platform(kind, nodes);
  if (!platform) {
    std::cerr << "riffle_scale: " << platform.status().message() << '\n';
    return 2;
  }
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto choice = riffle::plan(platform->fabric, bytes, {.max_lanes = lanes, .only = only});
  const double planned_s = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!choice) {
    std::cerr << "riffle_scale: " << choice.status().message() << '\n';
    return 1;
  }
  const Simulated s = simulate(engine, *platform, choice->plans, static_cast<double>(bytes));
  const nlohmann::ordered_json row = {{"platform", kind},
                                      {"nodes", nodes},
                                      {"bytes", bytes},
                                      {"plan", choice->plans.name},
                                      {"lanes", choice->plans.lanes.size()},
                                      {"flows", s.flows},
                                      {"bound_us", choice->bound_us},
                                      {"predicted_us", choice->time_us},
                                      {"simgrid_us", s.total_s * 1e6},
                                      {"simgrid_steady_us", s.steady_s * 1e6},
                                      {"simgrid_chunk_us", s.chunk_s * 1e6},
                                      {"planning_s", planned_s},
                                      {"limit", choice->candidates.front().limit}};
  std::cout << row.dump() << '\n';
  return 0;
}
