// What the tuner costs the application thread, which NCCL calls it on at every launch: one call of
// getCollInfo (v4's table, as NCCL 2.24 to 2.27 see it) on a fresh copy of a cost table. Every call
// is timed alone; the clock's own cost is part of the numbers and is shown beside them.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

#include "plugin/abi/tuner.h"

extern "C" const riffle::abi::TunerV4 ncclTunerPlugin_v4;

namespace {

using Clock = std::chrono::steady_clock;
using Costs = std::array<float, 7 * 3>;

// Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT; LL, LL128, Simple.
constexpr Costs kOffered = {70,  65, 90, 60, 50, 80, -1, -1, -1, -1, -1,
                            500, -1, -1, -1, -1, -1, -1, -1, -1, 300};

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double percentile(std::vector<double>& samples, double share) {
  const auto index = static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1));
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(index),
                   samples.end());
  return samples[index];
}

void report(benchmark::State& state, std::vector<double>& samples) {
  state.counters["p50_ns"] = percentile(samples, 0.50);
  state.counters["p99_ns"] = percentile(samples, 0.99);
  state.counters["p99.9_ns"] = percentile(samples, 0.999);
}

void clock_alone(benchmark::State& state) {
  std::vector<double> samples;
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    samples.push_back(ns_since(start));
  }
  report(state, samples);
}
BENCHMARK(clock_alone)->Iterations(1 << 20);

void get_coll_info(benchmark::State& state) {
  const auto& tuner = ncclTunerPlugin_v4;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  void* context = nullptr;
  if (tuner.init(64, 8, nullptr, &context) != 0 || context == nullptr) {
    state.SkipWithError("the tuner does not start");
    return;
  }
  std::vector<double> samples;
  for (auto _ : state) {
    Costs costs = kOffered;
    benchmark::DoNotOptimize(costs);
    int channels = 0;
    const Clock::time_point start = Clock::now();
    tuner.getCollInfo(context, 4, bytes, 1, reinterpret_cast<float**>(costs.data()), 7, 3, 0,
                      &channels);
    benchmark::ClobberMemory();
    samples.push_back(ns_since(start));
    if ((costs[11] == 0) != (bytes >= 65536)) state.SkipWithError("a wrong choice");
  }
  report(state, samples);
  tuner.destroy(context);
}
// Below and above RIFFLE_COLLNET_MIN_BYTES' default.
BENCHMARK(get_coll_info)->Arg(1024)->Arg(64 << 20)->Iterations(1 << 20);

}  // namespace

BENCHMARK_MAIN();
