// Speed of the relaxed modes' update rules on buffers far larger than the caches, as a bucket of
// gradients is. bytes_per_second counts what is read and written.
//
//   build/bench/riffle_rules_bench
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "plugin/collective/relaxed/rules/gradient_rules.h"

namespace riffle {
namespace {

constexpr std::size_t kElements = 8 << 20;  // 32 MiB of float32

struct Buffers {
  explicit Buffers(DataType type)
      : state(kElements, 0.5F),
        other(kElements, 0.25F),
        third(kElements, 0.25F),
        z(kElements, 1.0F),
        g(kElements * size_of(type)),
        out(kElements * size_of(type)) {
    std::memset(g.data(), 0x30, g.size());
    std::memset(out.data(), 0x30, out.size());
  }
  std::vector<float> state, other, third, z;
  std::vector<std::byte> g, out;
};

void report(benchmark::State& state, std::size_t bytes_per_element) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(kElements * bytes_per_element));
}

void copy(benchmark::State& state) {
  Buffers b(DataType::kFloat32);
  for (auto _ : state) {
    std::memcpy(b.z.data(), b.state.data(), kElements * sizeof(float));
    benchmark::ClobberMemory();
  }
  report(state, 8);
}

void prepare(benchmark::State& state, DataType type) {
  Buffers b(type);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        rules::prepare(b.state.data(), b.g.data(), type, kElements, b.z.data()));
  }
  report(state, 8 + size_of(type));
}

void finish(benchmark::State& state, DataType type) {
  Buffers b(type);
  for (auto _ : state) {
    rules::finish(b.z.data(), 2, 8, kElements, false, b.state.data(), type, b.out.data());
    benchmark::ClobberMemory();
  }
  report(state, 12 + size_of(type));
}

void finish_momentum(benchmark::State& state, DataType type) {
  Buffers b(type);
  for (auto _ : state) {
    rules::finish_momentum(b.z.data(), 2, 8, b.g.data(), kElements, 0.9F, false,
                           {b.other.data(), b.state.data(), b.third.data()}, type, b.out.data());
    benchmark::ClobberMemory();
  }
  report(state, 28 + 2 * size_of(type));
}

void step_alone(benchmark::State& state, DataType type) {
  Buffers b(type);
  for (auto _ : state) {
    rules::step_alone(b.g.data(), nullptr, 8, kElements, b.state.data(), type, b.out.data());
    benchmark::ClobberMemory();
  }
  report(state, 8 + 2 * size_of(type));
}

void register_all() {
  benchmark::RegisterBenchmark("memcpy", copy);
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    const std::string suffix = std::string("/") + name_of(type);
    benchmark::RegisterBenchmark(("prepare" + suffix).c_str(), prepare, type);
    benchmark::RegisterBenchmark(("finish" + suffix).c_str(), finish, type);
    benchmark::RegisterBenchmark(("finish_momentum" + suffix).c_str(), finish_momentum, type);
    benchmark::RegisterBenchmark(("step_alone" + suffix).c_str(), step_alone, type);
  }
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  riffle::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
