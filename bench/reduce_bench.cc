// Speed of the reduction kernels on pieces that stay in the L2 cache, as the engine feeds them.
// bytes_per_second counts operand bytes read: operands * piece / time.
//
//   build/bench/riffle_reduce_bench --benchmark_filter=float/sum
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "plugin/kernels/reduce.h"

namespace riffle {
namespace {

constexpr std::size_t kPieceBytes = 128 << 10;  // the default of RIFFLE_PIECE_BYTES

void run(benchmark::State& state, Isa isa, DataType type, ReduceOp op) {
  const auto operands = static_cast<std::size_t>(state.range(0));
  // 0x30 is a modest number in every format, so that no format meets only its special values.
  std::vector<std::vector<unsigned char>> buffers(operands,
                                                  std::vector<unsigned char>(kPieceBytes, 0x30));
  std::vector<const void*> sources;
  for (const auto& buffer : buffers) sources.push_back(buffer.data());
  std::vector<unsigned char> result(kPieceBytes);
  for (auto _ : state) {
    reduce_with(isa, result.data(), sources, kPieceBytes / size_of(type), type, op);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(operands * kPieceBytes));
}

void register_all() {
  for (int t = 0; t < kDataTypes; ++t) {
    for (int o = 0; o < kReduceOps; ++o) {
      for (const Isa isa : kIsas) {
        if (!is_available(isa)) continue;
        const auto type = static_cast<DataType>(t);
        const auto op = static_cast<ReduceOp>(o);
        const std::string name =
            std::string(name_of(type)) + "/" + name_of(op) + "/" + name_of(isa);
        benchmark::RegisterBenchmark(name.c_str(), run, isa, type, op)->Arg(2)->Arg(8);
      }
    }
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
