// What a sparse all-reduce costs one worker's processor, the network left out: all workers run in
// one thread, and messages are handed over in memory. A chunk of 1 MiB of float32, 1 %, in steady
// state. bytes_per_second is chunk bytes per worker and second; sent is what one worker puts on the
// wire, dense_ring what a dense ring would; words/formula compares entries * 2 with
// 4k(P-1)/P and its forms for teams (docs/sparse.md).
//
//   build/bench/riffle_sparse_exchange_bench
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "sparse/exchange.h"

namespace riffle::sparse {
namespace {

constexpr std::size_t kCount = (1 << 20) / sizeof(float);

struct Case {
  const char* name;
  int workers, teams;
  ExchangeOptions options;
};

struct Workers {
  explicit Workers(const Case& c) : layout({c.workers, c.teams, kCount, 0.01}) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (int p = 0; p < c.workers; ++p) {
      exchanges.emplace_back(layout, c.options, p);
      states.emplace_back(layout, p, c.options.residual);
      gradients.emplace_back(kCount);
      for (float& g : gradients.back()) {
        const float n = normal(random);
        g = n * std::fabs(n);
      }
      results.emplace_back(kCount);
    }
    messages.resize(exchanges.size());
  }

  void call() {
    ++sequence;
    for (std::size_t p = 0; p < exchanges.size(); ++p) {
      exchanges[p].begin(states[p], gradients[p].data(), Element::kFloat32, sequence);
    }
    while (!exchanges[0].is_done()) {  // all have the same number of steps
      for (std::size_t p = 0; p < exchanges.size(); ++p) {
        const auto bytes = exchanges[p].message();
        messages[p].assign(bytes.begin(), bytes.end());
      }
      for (Exchange& exchange : exchanges) {
        const Status status = exchange.receive(messages[exchange.from()]);
        if (!status) {
          std::fprintf(stderr, "%s\n", status.message().c_str());
          std::abort();
        }
      }
    }
    for (std::size_t p = 0; p < exchanges.size(); ++p) {
      exchanges[p].write_result(results[p].data(), Element::kFloat32);
    }
  }

  Layout layout;
  std::vector<Exchange> exchanges;
  std::vector<ChunkState> states;
  std::vector<std::vector<float>> gradients, results;
  std::vector<std::vector<std::uint8_t>> messages;
  std::uint32_t sequence = 0;
};

void run(benchmark::State& state, const Case& c) {
  Workers workers(c);
  for (int i = 0; i < 20; ++i) workers.call();  // residuals fill, thresholds settle
  for (auto _ : state) workers.call();
  const Exchange& first = workers.exchanges[0];
  const std::uint64_t offered = workers.states[0].offer.entries();
  const Traffic formula = predicted(workers.layout, c.options.across, 0, offered);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kCount * sizeof(float)) *
                          c.workers);
  state.counters["messages"] = static_cast<double>(first.traffic().messages);
  state.counters["words/formula"] =
      static_cast<double>(first.traffic().entries) / static_cast<double>(formula.entries);
  state.counters["sent"] = static_cast<double>(first.bytes_sent());
  state.counters["dense_ring"] = 2.0 * (c.workers - 1) / c.workers * kCount * sizeof(float);
}

const Case kCases[] = {
    {"8 workers, exact", 8, 1, {}},
    {"8 workers, reuse", 8, 1, {.selection = Selection::kReuse}},
    {"8 workers, reuse, bfloat16 values",
     8,
     1,
     {.selection = Selection::kReuse, .values = Element::kBfloat16}},
    {"8 workers, 2 teams gathered, reuse", 8, 2, {.selection = Selection::kReuse}},
    {"8 workers, 2 teams recursive, reuse",
     8,
     2,
     {.across = Across::kRecursive, .selection = Selection::kReuse}},
    {"14 workers, 7 teams gathered, reuse", 14, 7, {.selection = Selection::kReuse}},
    {"8 workers, reuse, ef21",
     8,
     1,
     {.selection = Selection::kReuse, .residual = ResidualPolicy::kEf21}},
};

}  // namespace
}  // namespace riffle::sparse

int main(int argc, char** argv) {
  using namespace riffle::sparse;
  for (const Case& c : kCases) {
    benchmark::RegisterBenchmark(c.name, [&c](benchmark::State& state) { run(state, c); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
