#include "plugin/kernels/reduce.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <tuple>

#include "test/plugin/kernels/reduce_reference.h"
#include "topology/base/check.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace riffle::reduce_test {
namespace {

using reference::Bytes;

std::vector<Isa> isas() {
  std::vector<Isa> available;
  for (const Isa isa : kIsas) {
    if (is_available(isa)) available.push_back(isa);
  }
  return available;
}

// Random bits reach every number, NaN and infinity, but rarely each other's neighbourhood: half of
// the elements get small numbers, and one in sixteen a special value.
Bytes random_operand(std::mt19937_64& random, DataType type, std::size_t count) {
  const std::size_t size = size_of(type);
  Bytes bytes(count * size);
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    std::uint64_t bits = random();
    const std::uint64_t sign = 1ULL << (8 * size - 1);
    if (random() % 2 == 0) bits &= sign | (sign >> 2) | 0xf;
    if (random() % 16 == 0) bits = random() % 2 == 0 ? sign : 0;
    std::memcpy(&bytes[i], &bits, size);
  }
  return bytes;
}

std::vector<Bytes> random_operands(std::mt19937_64& random, DataType type, std::size_t operands,
                                   std::size_t count) {
  std::vector<Bytes> all;
  for (std::size_t k = 0; k < operands; ++k) all.push_back(random_operand(random, type, count));
  return all;
}

Bytes reduced(Isa isa, DataType type, ReduceOp op, const std::vector<Bytes>& operands) {
  std::vector<const void*> sources;
  for (const Bytes& operand : operands) sources.push_back(operand.data());
  Bytes result(operands[0].size());
  reduce_with(isa, result.data(), sources, result.size() / size_of(type), type, op);
  return result;
}

class ReduceTest : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  DataType type() const { return static_cast<DataType>(std::get<0>(GetParam())); }
  ReduceOp op() const { return static_cast<ReduceOp>(std::get<1>(GetParam())); }
};

TEST_P(ReduceTest, AgreesWithTheReferenceBitForBit) {
  std::mt19937_64 random(1);
  for (std::size_t operands = 1; operands <= 17; ++operands) {
    for (const std::size_t count : {0, 1, 7, 63, 64, 65, 997, 1009}) {
      const auto all = random_operands(random, type(), operands, count);
      const Bytes expected = reference::reduce(type(), op(), all);
      for (const Isa isa : isas()) {
        ASSERT_EQ(reduced(isa, type(), op(), all), expected)
            << name_of(isa) << ", " << operands << " operands of " << count;
      }
    }
  }
}

TEST_P(ReduceTest, DestinationMayBeAnyOperand) {
  std::mt19937_64 random(2);
  constexpr std::size_t kOperands = 5;
  const auto all = random_operands(random, type(), kOperands, 331);
  const Bytes expected = reference::reduce(type(), op(), all);
  for (const Isa isa : isas()) {
    for (std::size_t place = 0; place < kOperands; ++place) {
      auto copy = all;
      std::vector<const void*> sources;
      for (const Bytes& operand : copy) sources.push_back(operand.data());
      reduce_with(isa, copy[place].data(), sources, 331, type(), op());
      EXPECT_EQ(copy[place], expected) << name_of(isa) << ", place " << place;
      for (std::size_t k = 0; k < kOperands; ++k) {
        if (k == place) continue;
        EXPECT_EQ(copy[k], all[k]) << "operand " << k << " was written";
      }
    }
  }
}

TEST_P(ReduceTest, NeedsNoAlignmentAndTouchesNothingAround) {
  std::mt19937_64 random(3);
  constexpr std::size_t kCount = 133;
  const std::size_t bytes = kCount * size_of(type());
  const auto all = random_operands(random, type(), 3, kCount);
  const Bytes expected = reference::reduce(type(), op(), all);
  for (const Isa isa : isas()) {
    for (std::size_t shift = 1; shift < 64; shift += 6) {
      std::vector<Bytes> shifted;
      std::vector<const void*> sources;
      for (std::size_t k = 0; k < all.size(); ++k) {
        shifted.emplace_back(bytes + 256);
        std::memcpy(shifted[k].data() + shift + k, all[k].data(), bytes);
        sources.push_back(shifted[k].data() + shift + k);
      }
      Bytes around(bytes + 256, 0xa5);
      reduce_with(isa, around.data() + shift, sources, kCount, type(), op());
      EXPECT_EQ(Bytes(around.begin() + shift, around.begin() + shift + bytes), expected);
      around.erase(around.begin() + shift, around.begin() + shift + bytes);
      EXPECT_EQ(around, Bytes(256, 0xa5)) << name_of(isa) << ", shift " << shift;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReduceTest,
                         ::testing::Combine(::testing::Range(0, kDataTypes),
                                            ::testing::Range(0, kReduceOps)),
                         [](const auto& info) {
                           return std::string(name_of(DataType(std::get<0>(info.param)))) + "_" +
                                  name_of(ReduceOp(std::get<1>(info.param)));
                         });

// Every value of a narrow format against every one of a list that ties, overflows, cancels and
// falls below the smallest number.
template <class Bits>
void check_all_patterns(DataType type, const reference::Layout& layout) {
  const reference::Format format(layout);
  Bytes every(format.patterns() * sizeof(Bits));
  for (unsigned bits = 0; bits < format.patterns(); ++bits) {
    const Bits narrow = static_cast<Bits>(bits);
    std::memcpy(&every[bits * sizeof(Bits)], &narrow, sizeof(Bits));
  }
  for (const Isa isa : isas()) {
    EXPECT_EQ(reduced(isa, type, ReduceOp::kSum, {every}),
              reference::reduce(type, ReduceOp::kSum, {every}));
  }
  const unsigned step = format.patterns() <= 256 ? 1 : format.patterns() / 61;
  for (unsigned other = 0; other < format.patterns(); other += step) {
    Bytes same(every.size());
    for (std::size_t i = 0; i < same.size(); i += sizeof(Bits)) {
      const Bits narrow = static_cast<Bits>(other);
      std::memcpy(&same[i], &narrow, sizeof(Bits));
    }
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
      const Bytes expected = reference::reduce(type, op, {every, same});
      for (const Isa isa : isas()) {
        ASSERT_EQ(reduced(isa, type, op, {every, same}), expected)
            << name_of(isa) << " " << name_of(op) << " with " << other;
      }
    }
  }
}

TEST(ReduceFormats, EveryHalf) {
  check_all_patterns<std::uint16_t>(DataType::kFloat16, reference::kHalf);
}
TEST(ReduceFormats, EveryBfloat16) {
  check_all_patterns<std::uint16_t>(DataType::kBfloat16, reference::kBfloat16);
}
TEST(ReduceFormats, EveryPairOfE4m3) {
  check_all_patterns<std::uint8_t>(DataType::kFloat8E4m3, reference::kE4m3);
}
TEST(ReduceFormats, EveryPairOfE5m2) {
  check_all_patterns<std::uint8_t>(DataType::kFloat8E5m2, reference::kE5m2);
}

// The reference itself, against numbers anyone can look up.
TEST(ReduceFormats, ReferenceKnowsTheWellKnownNumbers) {
  EXPECT_EQ(reference::Format(reference::kHalf).decode(0x7bff), 65504.0);
  EXPECT_EQ(reference::Format(reference::kHalf).encode(65520.0), 0x7c00U);
  EXPECT_EQ(reference::Format(reference::kBfloat16).encode(1.0), 0x3f80U);
  EXPECT_EQ(reference::Format(reference::kE4m3).decode(0x7e), 448.0);
  EXPECT_EQ(reference::Format(reference::kE4m3).decode(1), std::ldexp(1.0, -9));
  EXPECT_EQ(reference::Format(reference::kE5m2).decode(0x7b), 57344.0);
  EXPECT_EQ(reference::Format(reference::kE5m2).encode(1e9), 0x7bU);
}

template <class T>
T one(ReduceOp op, DataType type, Isa isa, std::initializer_list<T> values) {
  std::vector<const void*> sources;
  for (const T& value : values) sources.push_back(&value);
  T result{};
  reduce_with(isa, &result, sources, 1, type, op);
  return result;
}

TEST(Reduce, RoundsNarrowFloatsOnceAfterAllOperands) {
  // 1 + 2^-11 + 2^-11 in half: step by step both ties fall back to 1, together they reach 1 +
  // 2^-10.
  for (const Isa isa : isas()) {
    EXPECT_EQ(one<std::uint16_t>(ReduceOp::kSum, DataType::kFloat16, isa, {0x3c00, 0x1000, 0x1000}),
              0x3c01);
  }
}

TEST(Reduce, SumsInTheOrderOfTheOperands) {
  for (const Isa isa : isas()) {
    EXPECT_EQ(one<float>(ReduceOp::kSum, DataType::kFloat32, isa, {1e30F, -1e30F, 1.0F}), 1.0F);
    EXPECT_EQ(one<float>(ReduceOp::kSum, DataType::kFloat32, isa, {1.0F, 1e30F, -1e30F}), 0.0F);
  }
}

TEST(Reduce, ZeroesHaveAnOrderInMaxAndMin) {
  for (const Isa isa : isas()) {
    for (const auto& zeroes : {std::initializer_list<double>{0.0, -0.0}, {-0.0, 0.0}}) {
      EXPECT_FALSE(std::signbit(one(ReduceOp::kMax, DataType::kFloat64, isa, zeroes)));
      EXPECT_TRUE(std::signbit(one(ReduceOp::kMin, DataType::kFloat64, isa, zeroes)));
    }
  }
}

TEST(Reduce, NoProductIsFusedIntoASum) {
  // The square of 1 + 2^-12 needs 25 bits; a fused operation would keep the last one.
  const float x = 1.0F + std::ldexp(1.0F, -12);
  for (const Isa isa : isas()) {
    EXPECT_EQ(one<float>(ReduceOp::kProd, DataType::kFloat32, isa, {x, x}),
              1.0F + std::ldexp(1.0F, -11));
  }
}

#if defined(__SSE2__)
TEST(Reduce, IgnoresTheCallersRoundingAndFlushing) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const unsigned before = _mm_getcsr();
  for (const Isa isa : isas()) {
    _mm_setcsr(before | 0x8040 | 0x4000);  // flush subnormals both ways, round up
    const float sum = one<float>(ReduceOp::kSum, DataType::kFloat32, isa, {tiny, tiny});
    const float rounded = one<float>(ReduceOp::kSum, DataType::kFloat32, isa, {1.0F, 1e-20F});
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after, before | 0x8040 | 0x4000);
    EXPECT_EQ(sum, 2 * tiny);
    EXPECT_EQ(rounded, 1.0F);
  }
}
#endif

TEST(Reduce, RefusesNoOperands) {
  float value = 0;
  EXPECT_THROW(reduce(&value, {}, 1, DataType::kFloat32, ReduceOp::kSum), InvariantBroken);
}

TEST(Reduce, BestIsAvailable) { EXPECT_TRUE(is_available(best_isa())); }

}  // namespace
}  // namespace riffle::reduce_test
