// riffle_scale: one all-reduce by one plan on one large platform, simulated by SimGrid's flow-level
// TCP model and predicted by our cost model. Prints one JSON object. bench/scale/run makes the
// table of docs/scale.md from many of them: SimGrid simulates one platform per process.
//
// SimGrid decides how flows share links on the real routes. Time of the steady state: everything
// the plan sends at once. Time before it: one chunk alone, stage by stage; a chunk of
// kChunkBytes is under way before the next stage begins. How stages overlap in the engine is not
// SimGrid's to tell: lab/simulation has the production engine for that.
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

// Ends of flows, counted by a signal: no code waits for each of them.
struct Ends {
  std::size_t flows = 0;
  double last_s = 0;
};
Ends ends;

// All flows at once, until the last has ended. SimGrid takes an ended flow out of its actor's list
// by walking through it, so one actor for all would take a time that grows with their square.
double seconds_of(const Platform& p, const Flows& flows) {
  constexpr double kPollSeconds = 1e-3;  // of simulated time
  constexpr std::size_t kFlowsPerActor = 128;
  const double begin = sg::Engine::get_clock();
  ends = {0, begin};
  const sg::SemaphorePtr all_ended = sg::Semaphore::create(0);
  std::size_t actors = 0;
  for (std::size_t first = 0; first < flows.size(); first += kFlowsPerActor, ++actors) {
    sg::Actor::create("sender", p.hosts[flows[first].from], [&p, &flows, first, all_ended] {
      for (std::size_t i = first; i < std::min(first + kFlowsPerActor, flows.size()); ++i) {
        const Flow& f = flows[i];
        const auto bytes = static_cast<std::uint64_t>(std::max(1.0, f.bytes));
        sg::Comm::sendto_init(p.hosts[f.from], p.hosts[f.to])->set_payload_size(bytes)->detach();
      }
      all_ended->acquire();  // with its actor a flow would end, too
    });
  }
  while (ends.flows < flows.size()) sg::this_actor::sleep_for(kPollSeconds);
  for (; actors > 0; --actors) all_ended->release();
  return ends.last_s - begin;
}

// What a prediction is made of. SimGrid knows links and latency; messages (a node's work for each
// of them) and the rest (headers, the first chunk's way, levels that wait for each other) it does
// not.
struct Parts {
  double links_us = 0, latency_us = 0, messages_us = 0, rest_us = 0;
};

Parts parts_of(const riffle::Fabric& fabric, const riffle::PlanChoice& choice,
               std::uint64_t bytes) {
  riffle::Fabric near = fabric;
  near.latency_us = 0;
  near.rack_latency_us.reset();
  const auto predicted_us = [&](const riffle::Fabric& f, std::int64_t message_ns) {
    return riffle::predict(f, choice.plans, bytes, message_ns).time_us;
  };
  const double all_us = predicted_us(fabric, riffle::kMessageNs);
  Parts parts;
  parts.latency_us = all_us - predicted_us(near, riffle::kMessageNs);
  parts.messages_us = predicted_us(near, riffle::kMessageNs) - predicted_us(near, 0);
  parts.links_us = riffle::link_times(fabric, choice.plans, bytes).front().time_us;
  parts.rest_us = all_us - parts.latency_us - parts.messages_us - parts.links_us;
  return parts;
}

struct Simulated {
  double steady_s = 0, chunk_s = 0, total_s = 0;
  std::size_t flows = 0;
};

Simulated simulate(sg::Engine& engine, const Platform& p, const riffle::PlanSet& plans,
                   double bytes, int partners) {
  Simulated result;
  sg::Link::on_communication_state_change_cb([](const auto&, auto) {
    ++ends.flows;
    ends.last_s = sg::Engine::get_clock();
  });
  const double chunk = std::min(bytes, kChunkBytes);
  sg::Actor::create("conductor", p.hosts[0], [&] {
    const Flows flows = riffle::scale::all_flows(plans, bytes, partners);
    result.flows = flows.size();
    result.steady_s = seconds_of(p, flows);
    for (const auto& stage : riffle::scale::stages(plans.lanes[0], chunk, partners)) {
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
  int nodes = 1024, lanes = 8, partners = riffle::scale::kAll;
  std::uint64_t bytes = 64 << 20;
  app.add_option("--platform", kind, "fat-tree-1, fat-tree-4, fat-tree-8, dragonfly, multi-site");
  app.add_option("--nodes", nodes, "A power of two from 64 to 16384");
  app.add_option("--bytes", bytes, "Of the buffer")->transform(CLI::AsSizeValue(false));
  app.add_option("--plan", only,
                 "ring, halving-doubling, double-tree, ...; empty: the planner's choice");
  app.add_option("--lanes", lanes, "Shuffled variants")->check(CLI::Range(1, 64));
  app.add_option("--partners", partners,
                 "Flows of a member of an even direct group, in the place of one to every other "
                 "member; 0: all")
      ->check(CLI::Range(0, 64));
  bool only_predicts = false;
  app.add_flag("--predict-only", only_predicts, "Plan and predict, do not simulate");
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
  Simulated s;
  if (!only_predicts) {
    s = simulate(engine, *platform, choice->plans, static_cast<double>(bytes), partners);
  }
  const Parts parts = parts_of(platform->fabric, *choice, bytes);
  const nlohmann::ordered_json row = {{"platform", kind},
                                      {"nodes", nodes},
                                      {"bytes", bytes},
                                      {"plan", choice->plans.name},
                                      {"lanes", choice->plans.lanes.size()},
                                      {"partners", partners},
                                      {"flows", s.flows},
                                      {"bound_us", choice->bound_us},
                                      {"predicted_us", choice->time_us},
                                      {"of_links_us", parts.links_us},
                                      {"of_latency_us", parts.latency_us},
                                      {"of_messages_us", parts.messages_us},
                                      {"of_rest_us", parts.rest_us},
                                      {"simgrid_us", s.total_s * 1e6},
                                      {"simgrid_steady_us", s.steady_s * 1e6},
                                      {"simgrid_chunk_us", s.chunk_s * 1e6},
                                      {"planning_s", planned_s},
                                      {"limit", choice->candidates.front().limit}};
  std::cout << row.dump() << '\n';
  return 0;
}
