// `riffle sim`: the production engine on a simulated network. Two uses: random scenarios with
// faults (--seed, --seeds), and a fabric (--fabric or --profile): the time of one all-reduce, or
// what probing at connect finds and costs (--probe).
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "lab/simulation/job.h"
#include "lab/simulation/play.h"
#include "lab/simulation/simulate.h"
#include "plugin/config/config.h"
#include "tools/command.h"
#include "tools/fabric_source.h"
#include "tools/numbers.h"
#include "tools/size_option.h"
#include "tools/terminal/patience.h"
#include "tools/trace/chrome.h"
#include "topology/base/time.h"
#include "topology/plan/planner.h"
#include "topology/probe/live_fabric.h"

namespace riffle::tools {
namespace {

constexpr std::uint64_t kNoSeed = ~std::uint64_t{0};
// CLI11 takes a number of too many digits, and one below zero, for one close to 2^64: the limits
// lie below that, and so does the sum of the two.
constexpr std::uint64_t kLastSeed = (std::uint64_t{1} << 62) - 1, kMostSeeds = 1'000'000'000;
constexpr std::size_t kShownLinks = 5;

struct SimArguments {
  std::uint64_t seed = kNoSeed, seeds = 0, from = 1;
  bool losses = false, traces = false;
  FabricSource source;
  std::uint64_t bytes = 16 << 20;
  std::string plan;
  bool probes = false;
  std::string trace_json;
  std::uint64_t tick_ns = 0, frame_cpu_ns = 0;
};

void print_trace(std::uint64_t now_ns, const std::string& what) {
  std::printf("%12.3f ms  %s\n", static_cast<double>(now_ns) / 1e6, what.c_str());
}

// Every node 0 would say why it changes its plan.
void keep_sessions_quiet() { ::setenv("RIFFLE_LOG", "warn", 0); }

bool play_one(const SimArguments& o, std::uint64_t seed, bool is_loud) {
  const sim::Scenario scenario =
      o.losses ? sim::draw_loss_scenario(seed) : sim::draw_scenario(seed);
  const sim::Outcome outcome =
      is_loud && o.traces ? sim::play(scenario, print_trace) : sim::play(scenario);
  if (is_loud || !outcome.broken.empty()) std::printf("%s", sim::describe(scenario).c_str());
  if (is_loud) {
    std::printf(
        "%llu calls done, %d changes of the plan, %d nodes report an error, %.3f s of "
        "virtual time, %llu frames\n",
        static_cast<unsigned long long>(outcome.calls), outcome.plan_changes, outcome.failed_nodes,
        static_cast<double>(outcome.end_ns) / 1e9,
        static_cast<unsigned long long>(outcome.counters.frames));
  }
  if (!outcome.broken.empty()) {
    std::printf("BROKEN: %s\nagain: riffle sim%s --seed %llu\n", outcome.broken.c_str(),
                o.losses ? " --losses" : "", static_cast<unsigned long long>(seed));
    std::fflush(stdout);  // at once, into a file as well
  }
  return outcome.broken.empty();
}

int soak(const SimArguments& o) {
  keep_sessions_quiet();
  using Clock = std::chrono::steady_clock;
  std::uint64_t broken = 0;
  auto shown = Clock::now();
  for (std::uint64_t i = 0; i < o.seeds; ++i) {
    broken += play_one(o, o.from + i, false) ? 0 : 1;
    if (Clock::now() - shown < std::chrono::seconds(2) && i + 1 < o.seeds) continue;
    shown = Clock::now();
    std::fprintf(stderr, "%llu of %llu seeds, %llu broken\n",
                 static_cast<unsigned long long>(i + 1), static_cast<unsigned long long>(o.seeds),
                 static_cast<unsigned long long>(broken));
  }
  std::printf("seeds %llu to %llu: %llu broken\n", static_cast<unsigned long long>(o.from),
              static_cast<unsigned long long>(o.from + o.seeds - 1),
              static_cast<unsigned long long>(broken));
  return broken == 0 ? 0 : kFailed;
}

PlanOptions plan_options(const SimArguments& o) {
  PlanOptions options;
  options.max_lanes = static_cast<int>(config().lanes);
  options.only = o.plan.empty() ? config().plan : o.plan;
  return options;
}

// Connect with probing, then one all-reduce by the plan on what was found.
int probe_of(const SimArguments& o) {
  const auto fabric = read_fabric(o.source, "sim");
  if (!fabric) return report(fabric.status());
  constexpr int kChunks = 64, kManyNodes = 128;  // every node's memory is here
  sim::JobOptions options;
  options.probes = true;
  options.network.tick_ns = o.tick_ns;
  options.network.frame_cpu_ns = o.frame_cpu_ns;
  options.session.engine.chunk_bytes = static_cast<std::size_t>(config().chunk_bytes);
  options.session.engine.piece_bytes = static_cast<std::size_t>(config().piece_bytes);
  options.session.engine.max_chunks = fabric->size() > kManyNodes ? kChunks / 8 : kChunks;
  options.session.replan.planned_bytes = o.bytes;
  options.session.replan.plan = plan_options(o);
  sim::Job job(fabric.value(), options);
  if (const Status s = patiently("probing", [&] { return job.connect(); }); !s) return report(s);
  const ProbeOutcome& found = job.probed();
  const sim::ProbeTraffic& sent = job.traffic();
  std::printf("probed in %.2f s (connect %.2f s): %d rounds, %llu of %llu pairs, %.1f MB%s%s\n",
              static_cast<double>(found.time_ns) / 1e9, static_cast<double>(job.connect_ns()) / 1e9,
              found.findings.rounds, static_cast<unsigned long long>(sent.pairs),
              static_cast<unsigned long long>(fabric->size()) * (fabric->size() - 1),
              static_cast<double>(sent.flow_bytes) / 1e6, found.trouble.empty() ? "" : "; ",
              found.trouble.c_str());
  std::printf("orders and reports %.1f kB, %llu answers\n",
              static_cast<double>(sent.message_bytes) / 1e3,
              static_cast<unsigned long long>(sent.answers));
  std::printf("found (as link rates, 1514/1448 of payload): %s\n",
              probe::describe(found.findings, job.basis().fabric).c_str());
  const auto time_us = patiently("simulating", [&] { return job.all_reduce_us(o.bytes); });
  if (!time_us) return report(time_us.status());
  std::printf("plan \"%s\": %s in %s, %.3f x bound\n", job.choice().plans.name.c_str(),
              bytes_text(o.bytes).c_str(), us_text(*time_us).c_str(),
              *time_us / bound_us(fabric.value(), o.bytes));
  return 0;
}

// In virtual time all nodes have the same clock.
Status write_trace(const std::string& path, const Fabric& fabric, const PlanChoice& choice,
                   sim::Simulated& result) {
  trace::JobTrace job;
  job.room_spans = sim::Simulated::kMostSpans / static_cast<std::size_t>(fabric.size());
  job.nodes.resize(static_cast<std::size_t>(fabric.size()));
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    job.nodes[i].is_there = true;
    job.nodes[i].host = fabric.nodes[i].name;
    job.nodes[i].spans = std::move(result.spans[i]);
  }
  job.nodes.front().dropped = result.dropped_spans;
  job.nodes.front().events.push_back({0, "plan", choice.plans.name, choice.reason});
  std::ofstream file(path, std::ios::binary);
  trace::write_chrome(job, trace::same_clock(fabric.size()), trace::deliveries(job), file);
  if (file.flush()) return Status::ok();
  return system_error("cannot write " + path + ": " + std::strerror(errno));
}

int time_of(const SimArguments& o) {
  const auto fabric = read_fabric(o.source, "sim");
  if (!fabric) return report(fabric.status());
  const auto choice =
      patiently("planning", [&] { return plan(fabric.value(), o.bytes, plan_options(o)); });
  if (!choice) return report(choice.status());
  sim::SimulateOptions options;
  options.engine.chunk_bytes = static_cast<std::size_t>(config().chunk_bytes);
  options.engine.piece_bytes = static_cast<std::size_t>(config().piece_bytes);
  options.network.tick_ns = o.tick_ns;
  options.network.frame_cpu_ns = o.frame_cpu_ns;
  options.traces = !o.trace_json.empty();
  auto result = patiently(
      "simulating", [&] { return sim::simulate(fabric.value(), choice->plans, o.bytes, options); });
  if (!result) return report(result.status());
  std::printf("%d nodes, %s, plan \"%s\"\n", fabric->size(), bytes_text(o.bytes).c_str(),
              choice->plans.name.c_str());
  std::printf("%-10s %14s %8s\n", "", "time (us)", "x bound");
  const auto line = [&](const char* name, double us) {
    std::printf("%-10s %14.1f %8.3f\n", name, us, us / choice->bound_us);
  };
  line("simulated", result->time_us);
  line("predicted", choice->time_us);
  line("bound", choice->bound_us);
  std::printf("%llu frames, %.1f MB of payload; busiest links:\n",
              static_cast<unsigned long long>(result->counters.frames),
              static_cast<double>(result->counters.payload_bytes) / 1e6);
  for (std::size_t i = 0; i < std::min(kShownLinks, result->links.size()); ++i) {
    const sim::LinkUse& use = result->links[i];
    std::printf("  %5.1f %%  %s, %.1f MB\n", 100 * use.share, use.link.c_str(), use.bytes / 1e6);
  }
  if (!options.traces) return 0;
  if (result->dropped_spans > 0) {
    std::fprintf(stderr, "note: %llu spans found no room and are missing in %s\n",
                 static_cast<unsigned long long>(result->dropped_spans), o.trace_json.c_str());
  }
  return report(write_trace(o.trace_json, *fabric, *choice, *result));
}

int run(const SimArguments& o) {
  const bool times = o.seed == kNoSeed && o.seeds == 0 && !o.probes;
  if (!o.trace_json.empty() && !times) {
    return report(
        invalid_argument("--trace-json needs --fabric or --profile, and no --probe or seeds"));
  }
  if (o.seed != kNoSeed) return play_one(o, o.seed, true) ? 0 : kFailed;
  if (o.seeds > 0) return soak(o);
  if (o.source.file.empty() && o.source.profile.empty()) {
    return report(invalid_argument("sim needs --seed, --seeds, --fabric or --profile"));
  }
  return o.probes ? probe_of(o) : time_of(o);
}

}  // namespace

void add_sim(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<SimArguments>();
  CLI::App* sub = app.add_subcommand(
      "sim", "The engine on a simulated network: random faults, or the time of an all-reduce");
  sub->add_option("--seed", o->seed, "Play one random scenario and say what happened")
      ->check(CLI::Range(std::uint64_t{0}, kLastSeed));
  sub->add_flag("--trace", o->traces, "With --seed: everything that happens, with its time");
  sub->add_option("--seeds", o->seeds, "Play so many scenarios")
      ->check(CLI::Range(std::uint64_t{1}, kMostSeeds));
  sub->add_option("--from", o->from, "The first of them")
      ->check(CLI::Range(std::uint64_t{0}, kLastSeed))
      ->capture_default_str();
  sub->add_flag("--losses", o->losses, "With --seed or --seeds: the survivors of a loss go on");
  add_options(*sub, o->source);
  add_bytes(*sub, o->bytes, "Size of the all-reduce");
  sub->add_option("--plan", o->plan, "Force one kind, as RIFFLE_PLAN");
  sub->add_flag(
      "--probe", o->probes,
      "With --fabric or --profile: probe first, as connect does, and plan on what it finds");
  sub->add_option("--trace-json", o->trace_json,
                  "With --fabric or --profile: write what riffle trace would, in virtual time");
  sub->add_option("--tick-ns", o->tick_ns,
                  "Rates are found anew at multiples of this; 1 is exact, 0 fits the size")
      ->check(CLI::Range(kSecond))
      ->capture_default_str();
  sub->add_option("--frame-cpu-ns", o->frame_cpu_ns,
                  "Processor time of a node for every frame sent or received")
      ->check(CLI::Range(kSecond))
      ->capture_default_str();
  sub->footer(
      "Examples: riffle sim --seeds 1000 --from 5000\n"
      "          riffle sim --profile racks8 --bytes 32M\n"
      "          riffle sim --profile racks8 --probe\n"
      "          riffle sim --profile straggler8 --bytes 4M --trace-json sim.json\n"
      "Rates of the fabric count as payload rates here.");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
