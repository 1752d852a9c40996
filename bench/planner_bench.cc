// Time to plan, check and encode for clusters of up to 16,384 nodes: racks of 16 at 10 Gbit/s
// behind uplinks of a quarter, either all nodes alike or every seventh at a quarter of the rate.
#include <benchmark/benchmark.h>

#include "topology/plan/planner.h"

namespace riffle {
namespace {

constexpr std::uint64_t kBytes = 64 << 20;

Fabric cluster(int nodes, bool is_uneven) {
  constexpr int kRack = 16;
  constexpr std::int64_t kRate = 10'000'000;
  Fabric f = even_fabric(nodes, kRate);
  f.racks.assign((nodes + kRack - 1) / kRack, {"r", kRack * kRate / 4, kRack * kRate / 4});
  for (int n = 0; n < nodes; ++n) {
    f.nodes[n].rack = n / kRack;
    if (is_uneven && n % 7 == 3) f.nodes[n].out_kbps = f.nodes[n].in_kbps = kRate / 4;
  }
  return f;
}

void arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"nodes", "uneven"})->Unit(benchmark::kMillisecond);
  for (int uneven : {0, 1}) {
    for (int nodes : {8, 64, 256, 1024, 4096, 16384}) b->Args({nodes, uneven});
  }
}

void plan_best(benchmark::State& state) {
  const Fabric f = cluster(static_cast<int>(state.range(0)), state.range(1) != 0);
  double x_bound = 0;
  for (auto _ : state) {
    const auto choice = plan(f, kBytes, {});
    x_bound = choice->time_us / choice->bound_us;
    benchmark::DoNotOptimize(choice);
  }
  state.counters["predicted_x_bound"] = x_bound;
}
BENCHMARK(plan_best)->Apply(arguments);

void check_and_encode(benchmark::State& state) {
  const Fabric f = cluster(static_cast<int>(state.range(0)), state.range(1) != 0);
  const PlanSet plans = plan(f, kBytes, {})->plans;
  std::size_t bytes = 0;
  for (auto _ : state) bytes = encode(plans).size();  // validates first
  state.counters["wire_bytes"] = static_cast<double>(bytes);
}
BENCHMARK(check_and_encode)->Apply(arguments);

}  // namespace
}  // namespace riffle

BENCHMARK_MAIN();
