// Selection alone, side by side with other ways to the same k entries: 64 MiB of float32, 1 %, one
// thread. Every way starts from the gradient and ends with indices and values of (about) the k
// largest magnitudes. bytes_per_second counts input bytes by the clock on the wall.
//
//   build/bench/riffle_sparse_select_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#if defined(RIFFLE_HIGHWAY)
#include <hwy/base.h>
#include <hwy/contrib/sort/vqsort.h>
#endif

#include "sparse/select.h"

namespace riffle::sparse {
namespace {

constexpr std::size_t kCount = (64 << 20) / sizeof(float);
constexpr std::size_t kKept = kCount / 100;

struct Input {
  const char* name;
  std::vector<float> values;
};

// Like gradients: layers of different scale, each with a tail heavier than a normal distribution's.
std::vector<float> layers() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(kCount);
  float scale = 1;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i % 300000 == 0) scale = std::exp(normal(random));
    const float n = normal(random);
    values[i] = scale * n * std::fabs(n);
  }
  return values;
}

std::vector<float> normal() {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(kCount);
  for (float& v : values) v = normal(random);
  return values;
}

const std::vector<Input>& inputs() {
  static const std::vector<Input> all = {{"normal", normal()}, {"layers", layers()}};
  return all;
}

void finish(benchmark::State& state, std::size_t kept) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kCount * sizeof(float)));
  state.counters["kept/k"] = static_cast<double>(kept) / kKept;
}

void exact(benchmark::State& state, Isa isa, const Input& input) {
  Selector selector(isa);
  Entries entries;
  for (auto _ : state) {
    selector.top_k(input.values.data(), Element::kFloat32, kCount, kKept, entries);
    benchmark::ClobberMemory();
  }
  finish(state, entries.count());
}

// In steady state: the threshold is the last call's. Chunks of 1 MiB, as the plugin gets them, are
// selected one after the other, each with its own threshold.
void reuse(benchmark::State& state, Isa isa, const Input& input, std::size_t chunk) {
  Selector selector(isa);
  std::vector<Entries> entries(kCount / chunk);
  std::vector<Threshold> thresholds(kCount / chunk);
  std::size_t kept = 0;
  for (auto _ : state) {
    kept = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      selector.near_top_k(&input.values[i * chunk], Element::kFloat32, chunk, chunk / 100,
                          thresholds[i], entries[i]);
      kept += entries[i].count();
    }
    benchmark::ClobberMemory();
  }
  finish(state, kept);
}

void exact_by_chunks(benchmark::State& state, Isa isa, const Input& input, std::size_t chunk) {
  Selector selector(isa);
  Entries entries;
  std::size_t kept = 0;
  for (auto _ : state) {
    kept = 0;
    for (std::size_t i = 0; i < kCount; i += chunk) {
      selector.top_k(&input.values[i], Element::kFloat32, chunk, chunk / 100, entries);
      kept += entries.count();
    }
    benchmark::ClobberMemory();
  }
  finish(state, kept);
}

// The other ways find the k-th magnitude in `magnitudes`, which they may disturb; then one plain
// scan collects what reaches it.
using KthOf = std::function<std::uint32_t(std::vector<std::uint32_t>& magnitudes)>;

void by_kth(benchmark::State& state, const KthOf& kth_of, const Input& input) {
  std::vector<std::uint32_t> magnitudes(kCount), indices(kCount);
  std::vector<float> values(kCount);
  std::size_t kept = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kCount; ++i) magnitudes[i] = magnitude_of(input.values[i]);
    const std::uint32_t kth = kth_of(magnitudes);
    kept = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      indices[kept] = static_cast<std::uint32_t>(i);
      values[kept] = input.values[i];
      kept += magnitude_of(input.values[i]) >= kth ? 1 : 0;
    }
    benchmark::ClobberMemory();
  }
  finish(state, kept);
}

std::uint32_t by_nth_element(std::vector<std::uint32_t>& magnitudes) {
  const auto nth = magnitudes.begin() + (kKept - 1);
  std::nth_element(magnitudes.begin(), nth, magnitudes.end(), std::greater<>());
  return *nth;
}

// Digits of 11, 10 and 10 bits from the top, four histograms at a time so that equal digits do not
// wait for each other.
std::uint32_t by_radix_histogram(std::vector<std::uint32_t>& magnitudes) {
  std::uint32_t prefix = 0;
  std::size_t wanted = kKept;
  unsigned low_bit = 31;
  for (const unsigned bits : {11U, 10U, 10U}) {
    const unsigned shift = low_bit - bits;
    const std::uint32_t mask = (1U << bits) - 1;
    std::vector<std::uint32_t> counts(4U << bits);
    std::size_t left = 0;  // later digits look only at what shares the digits before
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      const std::uint32_t m = magnitudes[i];
      if (m >> low_bit != prefix >> low_bit) continue;
      magnitudes[left++] = m;
      ++counts[((i & 3) << bits) + ((m >> shift) & mask)];
    }
    magnitudes.resize(left);
    std::uint32_t bin = mask;
    for (;; --bin) {
      const std::size_t here = std::size_t{counts[bin]} + counts[(1U << bits) + bin] +
                               counts[(2U << bits) + bin] + counts[(3U << bits) + bin];
      if (here >= wanted || bin == 0) break;
      wanted -= here;
    }
    prefix |= bin << shift;
    low_bit = shift;
  }
  magnitudes.resize(kCount);
  return prefix;
}

#if defined(RIFFLE_HIGHWAY)
#if HWY_MAJOR > 1 || (HWY_MAJOR == 1 && HWY_MINOR >= 2)
constexpr const char* kHighway = "highway VQSelect";
std::uint32_t by_highway(std::vector<std::uint32_t>& magnitudes) {
  hwy::VQSelect(magnitudes.data(), kCount, kKept - 1, hwy::SortDescending());
  return magnitudes[kKept - 1];
}
#else
constexpr const char* kHighway = "highway VQSort";  // this release has no VQSelect
std::uint32_t by_highway(std::vector<std::uint32_t>& magnitudes) {
  static hwy::Sorter sorter;
  sorter(magnitudes.data(), kCount, hwy::SortDescending());
  return magnitudes[kKept - 1];
}
#endif
#endif

template <class Run, class... Arguments>
void add(const std::string& name, Run run, Arguments... arguments) {
  benchmark::RegisterBenchmark(name.c_str(), run, arguments...)
      ->Unit(benchmark::kMillisecond)
      ->MeasureProcessCPUTime()
      ->UseRealTime();
}

void register_all() {
  constexpr std::size_t kChunk = (1 << 20) / sizeof(float);
  constexpr std::size_t kBlock = kChunk / 8;  // of one chunk among eight workers
  for (const Input& input : inputs()) {
    const std::string suffix = std::string("/") + input.name;
    const auto in = std::cref(input);
    for (const Isa isa : kIsas) {
      if (!is_available(isa)) continue;
      const std::string tail = suffix + "/" + name_of(isa);
      add("exact" + tail, exact, isa, in);
      add("exact, chunks of 1 MiB" + tail, exact_by_chunks, isa, in, kChunk);
      add("exact, blocks of 128 KiB" + tail, exact_by_chunks, isa, in, kBlock);
      add("threshold" + tail, reuse, isa, in, kCount);
      add("threshold, chunks of 1 MiB" + tail, reuse, isa, in, kChunk);
      add("threshold, blocks of 128 KiB" + tail, reuse, isa, in, kBlock);
    }
    add("std::nth_element" + suffix, by_kth, by_nth_element, in);
    add("radix histogram" + suffix, by_kth, by_radix_histogram, in);
#if defined(RIFFLE_HIGHWAY)
    add(kHighway + suffix, by_kth, by_highway, in);
#endif
  }
}

}  // namespace
}  // namespace riffle::sparse

int main(int argc, char** argv) {
  riffle::sparse::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
