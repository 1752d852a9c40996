// Blocks of float8: decoded here by the format's definition, in double; every instruction set gives
// the same bits.
#include "plugin/kernels/float8_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "plugin/kernels/reduce.h"
#include "plugin/kernels/rescale.h"
#include "test/plugin/kernels/numbers.h"

namespace riffle::float8_block_test {
namespace {

using Blocks = std::vector<std::byte>;
using Numbers = std::vector<float>;

constexpr std::size_t kGroup = 32;

std::vector<Isa> isas() {
  std::vector<Isa> available;
  for (const Isa isa : kIsas) {
    if (is_available(isa)) available.push_back(isa);
  }
  return available;
}

Blocks packed(const Numbers& numbers, Isa isa = best_isa()) {
  Blocks blocks(float8_blocks(numbers.size()) * kFloat8BlockBytes, std::byte{0x5a});
  pack_float8_with(isa, numbers.data(), numbers.size(), blocks.data());
  return blocks;
}

Numbers unpacked(const Blocks& blocks, std::size_t count, Isa isa = best_isa()) {
  Numbers numbers(count, -7);
  unpack_float8_with(isa, blocks.data(), count, numbers.data());
  return numbers;
}

// By the definition: four scales, then 128 codes.
double by_definition(const Blocks& blocks, std::size_t i) {
  const std::byte* const block = &blocks[i / kFloat8BlockElements * kFloat8BlockBytes];
  const std::size_t at = i % kFloat8BlockElements;
  const int scale = std::to_integer<int>(block[at / kGroup]);
  if (scale == 255) return std::nan("");
  const auto code = std::to_integer<std::uint64_t>(block[kFloat8BlockElements / kGroup + at]);
  if ((code & 0x7f) == 0x7f) return std::nan("");
  return std::ldexp(testing::decode_minifloat(code, 4, 3), scale - 127);
}

double largest_beside(const Numbers& numbers, std::size_t i) {
  const std::size_t begin = i / kGroup * kGroup, end = std::min(begin + kGroup, numbers.size());
  double largest = 0;
  for (std::size_t k = begin; k < end; ++k) {
    largest = std::max(largest, std::fabs(static_cast<double>(numbers[k])));
  }
  return largest;
}

double rounding(double x, double largest) {
  return std::max({std::fabs(x) / 16, std::ldexp(largest, -17), 0x1p-136});
}

// Magnitudes over some range of powers of two; every block has another one.
Numbers random_numbers(std::size_t count, std::mt19937_64& random) {
  Numbers numbers(count);
  double base = 0, range = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % kFloat8BlockElements == 0) {
      base = std::uniform_real_distribution(-130.0, 120.0)(random);
      range = std::uniform_real_distribution(0.0, 24.0)(random);
    }
    const double power = base + std::uniform_real_distribution(-range, 0.0)(random);
    const double sign = random() % 2 == 0 ? 1 : -1;
    numbers[i] = static_cast<float>(random() % 9 == 0 ? 0 : sign * std::exp2(power));
  }
  return numbers;
}

TEST(Float8Block, IsOffByARoundingAtMost) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {1U, 31U, 32U, 33U, 127U, 128U, 129U, 12'800U, 12'811U}) {
    const Numbers numbers = random_numbers(count, random);
    for (const Isa isa : isas()) {
      const Blocks blocks = packed(numbers, isa);
      ASSERT_EQ(blocks, packed(numbers, Isa::kPortable)) << name_of(isa);
      const Numbers back = unpacked(blocks, count, isa);
      for (std::size_t i = 0; i < count; ++i) {
        const auto x = static_cast<double>(numbers[i]), is = static_cast<double>(back[i]);
        ASSERT_EQ(is, by_definition(blocks, i)) << i;
        ASSERT_LE(std::fabs(is - x), rounding(x, largest_beside(numbers, i))) << x << " at " << i;
      }
    }
  }
}

// What a block has beyond the numbers is 0, and nothing behind it is touched.
TEST(Float8Block, EndsWithTheLastNumber) {
  for (std::size_t count = 1; count < 300; count += 7) {
    const Numbers numbers(count, 3);
    const Blocks blocks = packed(numbers);
    for (std::size_t i = count; i < float8_blocks(count) * kFloat8BlockElements; ++i) {
      ASSERT_EQ(by_definition(blocks, i), 0);
    }
    Numbers longer(count + 40, -7);
    unpack_float8(blocks.data(), count, longer.data());
    for (std::size_t i = 0; i < longer.size(); ++i) ASSERT_EQ(longer[i], i < count ? 3 : -7);
  }
}

TEST(Float8Block, Extremes) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  Numbers numbers(kFloat8BlockElements, 1);
  numbers[5] = std::numeric_limits<float>::infinity();
  numbers[40] = std::nanf("");
  numbers[70] = 0x1.bp127F;  // 1.6875
  numbers[71] = kLeast;
  std::fill(numbers.begin() + 96, numbers.end(), kLeast);
  for (const Isa isa : isas()) {
    const Blocks blocks = packed(numbers, isa);
    ASSERT_EQ(blocks, packed(numbers, Isa::kPortable));
    const Numbers back = unpacked(blocks, numbers.size(), isa);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_TRUE(std::isnan(back[i])) << i;
    EXPECT_EQ(back[70], 0x1.cp127F);  // the nearest: three bits of mantissa
    EXPECT_EQ(back[71], 0);
    EXPECT_EQ(back[64], 0);
    for (std::size_t i = 96; i < back.size(); ++i) EXPECT_EQ(back[i], 0) << i;
  }
  EXPECT_TRUE(std::isinf(unpacked(packed({kMost, -kMost}), 2)[1])) << "rounds beyond float32";
  // 1.75 is the largest mantissa at the largest exponent: up to it the scale stays.
  for (const float x : {1.75F, 1.7500001F, 1.99F, 1.0F}) {
    const double is = static_cast<double>(unpacked(packed({x}), 1)[0]);
    EXPECT_LE(std::fabs(is - static_cast<double>(x)), static_cast<double>(x) / 16);
    EXPECT_EQ(std::to_integer<int>(packed({x})[0]), x > 1.75F ? 127 - 7 : 127 - 8) << x;
  }
}

Blocks sum_of(const std::vector<Blocks>& operands, Isa isa) {
  std::vector<const void*> sources;
  for (const Blocks& operand : operands) sources.push_back(operand.data());
  Blocks result(operands[0].size());
  reduce_with(isa, result.data(), sources, result.size() / kFloat8BlockBytes,
              DataType::kFloat8Block, ReduceOp::kSum);
  return result;
}

// 10,000 sums, in stages as plans have them: every number is off by a rounding of each operand and
// of each partial sum at most.
TEST(Float8Block, SumsInStages) {
  std::mt19937_64 random(2);
  constexpr std::size_t kCount = 96;
  for (int run = 0; run < 10'000; ++run) {
    const std::size_t nodes = 2 + random() % 15;
    std::vector<Numbers> inputs(nodes, Numbers(kCount));
    std::vector<Blocks> partial;
    std::vector<double> sum(kCount), allowed(kCount);
    std::normal_distribution<float> normal;
    for (Numbers& input : inputs) {
      for (float& x : input) {
        const float n = normal(random);
        x = n * n * n;
      }
      partial.push_back(packed(input));
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto x = static_cast<double>(input[i]);
        sum[i] += x;
        allowed[i] += rounding(x, largest_beside(input, i));
      }
    }
    const Isa isa = isas()[random() % isas().size()];
    while (partial.size() > 1) {
      const std::size_t together = std::min<std::size_t>(2 + random() % 4, partial.size());
      std::vector<Blocks> some(partial.end() - static_cast<std::ptrdiff_t>(together),
                               partial.end());
      partial.resize(partial.size() - together);
      const Blocks result = sum_of(some, isa);
      ASSERT_EQ(result, sum_of(some, Isa::kPortable));
      const Numbers numbers = unpacked(result, kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        // The rounded one is within a sixteenth of what was rounded.
        allowed[i] +=
            1.1 * rounding(static_cast<double>(numbers[i]), 1.1 * largest_beside(numbers, i));
      }
      partial.insert(partial.begin(), result);
    }
    const Numbers result = unpacked(partial[0], kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_LE(std::fabs(static_cast<double>(result[i]) - sum[i]), allowed[i] * (1 + 1e-6))
          << "run " << run << ", " << nodes << " nodes, element " << i;
    }
  }
}

TEST(Float8Block, TheSumMayLieWhereAnOperandDoes) {
  std::mt19937_64 random(3);
  std::vector<Blocks> operands;
  for (int k = 0; k < 5; ++k) operands.push_back(packed(random_numbers(640, random)));
  const Blocks expected = sum_of(operands, Isa::kPortable);
  for (const Isa isa : isas()) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      std::vector<Blocks> own = operands;
      std::vector<const void*> sources;
      for (const Blocks& operand : own) sources.push_back(operand.data());
      reduce_with(isa, own[k].data(), sources, own[k].size() / kFloat8BlockBytes,
                  DataType::kFloat8Block, ReduceOp::kSum);
      EXPECT_EQ(own[k], expected) << name_of(isa) << ", operand " << k;
    }
  }
}

TEST(Float8Block, ASumOfOneIsTheSame) {
  std::mt19937_64 random(4);
  const Blocks blocks = packed(random_numbers(1280, random));
  for (const Isa isa : isas()) {
    EXPECT_EQ(unpacked(sum_of({blocks}, isa), 1280), unpacked(blocks, 1280)) << name_of(isa);
  }
}

TEST(Float8Block, Rescaled) {
  std::mt19937_64 random(5);
  const Numbers numbers = unpacked(packed(random_numbers(1280, random)), 1280);
  Blocks blocks = packed(numbers);
  rescale(blocks.data(), blocks.size() / kFloat8BlockBytes, DataType::kFloat8Block, 8.0 / 7);
  const Numbers scaled = unpacked(blocks, 1280);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double x = static_cast<double>(numbers[i]) * 8 / 7;
    if (!std::isfinite(static_cast<float>(x))) continue;
    ASSERT_LE(std::fabs(static_cast<double>(scaled[i]) - x),
              rounding(x, largest_beside(numbers, i) * 8 / 7) * (1 + 1e-6));
  }
}

}  // namespace
}  // namespace riffle::float8_block_test
