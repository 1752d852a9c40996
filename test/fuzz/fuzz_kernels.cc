// Reductions of any bytes: every instruction set gives what the scalar reference gives. The first
// four bytes choose type, operation, operands and place of the result, the rest are the operands.
#include <string>

#include "plugin/kernels/reduce.h"
#include "test/fuzz/target.h"
#include "test/plugin/kernels/reduce_reference.h"

namespace riffle::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (int type = 0; type < kDataTypes; ++type) {
    for (int op = 0; op < kReduceOps; ++op) {
      Bytes seed{static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(op), 3, 1};
      for (int i = 0; i < 900; ++i) seed.push_back(static_cast<std::uint8_t>(i * i * 31 + type));
      all.push_back(seed);
    }
  }
  return all;
}

void try_input(std::span<const std::uint8_t> input) {
  if (input.size() < 4) return;
  const auto type = static_cast<DataType>(input[0] % kDataTypes);
  const auto op = static_cast<ReduceOp>(input[1] % kReduceOps);
  const std::size_t count_of_operands = 1 + input[2] % 17;
  const std::size_t place = input[3] % count_of_operands;
  const auto data = input.subspan(4);
  const std::size_t count = data.size() / count_of_operands / size_of(type);
  std::vector<Bytes> operands;
  for (std::size_t k = 0; k < count_of_operands; ++k) {
    const auto part = data.subspan(k * count * size_of(type), count * size_of(type));
    operands.emplace_back(part.begin(), part.end());
  }
  const Bytes expected = reference::reduce(type, op, operands);
  for (const Isa isa : kIsas) {
    if (!is_available(isa)) continue;
    std::vector<Bytes> copy = operands;
    std::vector<const void*> sources;
    for (const Bytes& operand : copy) sources.push_back(operand.data());
    reduce_with(isa, copy[place].data(), sources, count, type, op);
    require(copy[place] == expected, std::string(name_of(isa)) +
                                         " differs from the reference for " + name_of(type) + " " +
                                         name_of(op));
  }
}

}  // namespace riffle::fuzz
