// riffle_planner_study: what the planner's choice takes on random fabrics, in the simulator with
// the production engine, as times of the bound (docs/algorithms.md, "How good the choice is").
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <vector>

#include "lab/simulation/study.h"
#include "topology/fabric/fabric_file.h"

namespace {

using riffle::sim::FabricClass;
using riffle::sim::Studied;

constexpr std::size_t kShownWorst = 10;

struct Options {
  FabricClass kind = FabricClass::kFlat;
  std::uint64_t from = 1, count = 20, bytes = 64 << 20, show = 0;
  std::int64_t base_mbps = riffle::sim::kStudyRateKbps / 1000, latency_us = 50;
  double limit = 1.15;
  bool is_quiet = false;
  riffle::PlanOptions planner;
  riffle::sim::SimulateOptions simulator;

  riffle::Fabric fabric(std::uint64_t seed) const {
    riffle::Fabric f = riffle::sim::draw_fabric(kind, seed, base_mbps * 1000);
    f.latency_us = latency_us;
    return f;
  }
};

struct Row {
  std::uint64_t seed;
  Studied studied;
};

// The value that `part` of the rows do not exceed.
double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::min(part * last + 0.5, last))];
}

template <class F>
std::vector<double> all_of(const std::vector<Row>& rows, const F& value) {
  std::vector<double> values;
  for (const Row& r : rows) values.push_back(value(r.studied));
  return values;
}

void summarise(const Options& o, std::vector<Row> rows) {
  const auto xs = all_of(rows, [](const Studied& s) { return s.x(); });
  const auto predictions = all_of(rows, [](const Studied& s) { return s.prediction(); });
  const auto within = [](const std::vector<double>& values, double low, double high) {
    const auto n = std::count_if(values.begin(), values.end(),
                                 [&](double v) { return v >= low && v <= high; });
    return 100.0 * static_cast<double>(n) / static_cast<double>(values.size());
  };
  std::printf("\n%zu fabrics, %llu bytes\n", rows.size(), static_cast<unsigned long long>(o.bytes));
  std::printf("x of bound: median %.4f, 98th percentile %.4f, worst %.4f; %.1f %% within %.3f\n",
              quantile(xs, 0.5), quantile(xs, 0.98), quantile(xs, 1), within(xs, 0, o.limit),
              o.limit);
  std::printf("prediction / simulated: %.3f to %.3f, median %.3f; %.1f %% within 10 %%\n",
              quantile(predictions, 0), quantile(predictions, 1), quantile(predictions, 0.5),
              within(predictions, 0.9, 1.1));
  const auto planning = all_of(rows, [](const Studied& s) { return s.planning_s; });
  const auto simulating = all_of(rows, [](const Studied& s) { return s.simulating_s; });
  std::printf("seconds per fabric, median and most: planning %.4f %.4f, simulating %.2f %.2f\n",
              quantile(planning, 0.5), quantile(planning, 1), quantile(simulating, 0.5),
              quantile(simulating, 1));
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return a.studied.x() > b.studied.x(); });
  std::printf("worst:");
  for (std::size_t i = 0; i < std::min(kShownWorst, rows.size()); ++i) {
    std::printf(" %llu (%.3f)", static_cast<unsigned long long>(rows[i].seed), rows[i].studied.x());
  }
  std::printf("\n");
}

int run(const Options& o) {
  std::vector<Row> rows;
  if (!o.is_quiet) {
    std::printf("%8s %5s %5s %10s %7s %7s  %s\n", "seed", "nodes", "racks", "bound ms", "x",
                "pred/x", "plan");
  }
  for (std::uint64_t seed = o.from; seed < o.from + o.count; ++seed) {
    const riffle::Fabric fabric = o.fabric(seed);
    const auto studied = riffle::sim::study(fabric, o.bytes, o.planner, o.simulator);
    if (!studied) {
      std::fprintf(stderr, "riffle_planner_study: seed %llu: %s\n",
                   static_cast<unsigned long long>(seed), studied.status().message().c_str());
      return 1;
    }
    if (!o.is_quiet) {
      std::printf("%8llu %5d %5zu %10.2f %7.4f %7.3f  %s\n", static_cast<unsigned long long>(seed),
                  fabric.size(), fabric.racks.size(), studied->bound_us / 1e3, studied->x(),
                  studied->prediction(), studied->plan.c_str());
      std::fflush(stdout);
    }
    rows.push_back({seed, *studied});
  }
  summarise(o, std::move(rows));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The planner's choice on random fabrics, simulated, as times of the bound");
  Options o;
  std::map<std::string, FabricClass> classes;
  for (const auto& c : riffle::sim::fabric_classes()) classes[c.name] = c.value;
  app.add_option("--class", o.kind, "Which fabrics (lab/simulation/study.h)")
      ->transform(CLI::CheckedTransformer(classes))
      ->required();
  app.add_option("--from", o.from, "First seed")->capture_default_str();
  app.add_option("--count", o.count, "Seeds")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--bytes", o.bytes, "Size of the all-reduce")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--base-mbps", o.base_mbps, "The base rate")
      ->check(CLI::Range(10, 1'000'000))
      ->capture_default_str();
  app.add_option("--latency-us", o.latency_us, "One way")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--limit", o.limit, "Of x, for the share within it")->capture_default_str();
  app.add_option("--only", o.planner.only, "Force one family of plans, as RIFFLE_PLAN");
  app.add_option("--lanes", o.planner.max_lanes, "Shuffled variants, at most")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--chunk-bytes", o.simulator.engine.chunk_bytes, "The engine's chunks, at most")
      ->check(CLI::Range(4096, 64 << 20))
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--window-bytes", o.simulator.engine.window_bytes, "Partial sums per flow")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--send-bytes", o.simulator.engine.send_bytes, "On their way per node")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--piece-bytes", o.simulator.engine.piece_bytes, "The engine's frames, at most")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--max-chunks", o.simulator.engine.max_chunks, "The engine's chunks at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--outstanding", o.simulator.outstanding, "Calls at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--call-bytes", o.simulator.call_bytes, "Size of a call, at most")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--tick-ns", o.simulator.network.tick_ns, "As for riffle sim")
      ->capture_default_str();
  app.add_flag("--quiet", o.is_quiet, "Only the summary");
  CLI::Option* show =
      app.add_option("--show", o.show, "Print the fabric of one seed for riffle sim --fabric");
  app.footer(
      "Examples: riffle_planner_study --class flat --count 1000 --limit 1.06 --quiet\n"
      "          riffle_planner_study --class even-racks --show 17 > 17.toml\n"
      "          riffle sim --fabric 17.toml --bytes 64M");
  CLI11_PARSE(app, argc, argv);
  if (show->count() > 0) {
    std::cout << riffle::to_toml(o.fabric(o.show));
    return 0;
  }
  return run(o);
}
