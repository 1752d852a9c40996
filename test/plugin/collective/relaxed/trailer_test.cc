// plugin/collective/relaxed/rules/trailer.h and convert.h, against definitions.
#include "plugin/collective/relaxed/rules/trailer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "plugin/kernels/convert.h"
#include "plugin/kernels/convert_kernels.h"
#include "plugin/kernels/reduce.h"
#include "test/plugin/kernels/float_reference.h"

namespace riffle::rules::trailer_test {
namespace {

using Trailers = std::vector<Trailer>;

std::vector<float> sum_of(const Trailers& trailers, int nodes) {
  std::vector<float> sum(trailer_elements(nodes), 0), one(sum.size());
  for (const Trailer& t : trailers) {
    write_trailer(t, nodes, one.data());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

Verdict verdict(const Trailers& trailers, int nodes) {
  return read_trailer(sum_of(trailers, nodes).data(), nodes);
}

TEST(Trailer, CountsThoseWhoTookPart) {
  for (int nodes : {2, 8, 256, 257, 1024, 65536}) {
    for (std::uint32_t digest : {0U, 1U, 0xffffffffU, 0x12345678U}) {
      Trailers all(static_cast<std::size_t>(nodes), {true, true, digest});
      EXPECT_EQ(verdict(all, nodes), (Verdict{Verdict::Kind::kAverage, nodes}))
          << nodes << " " << digest;
      all[1].takes_part = false;
      all[1].digest = 77;
      all[1].is_finite = false;  // its input is not in the sum
      EXPECT_EQ(verdict(all, nodes), (Verdict{Verdict::Kind::kAverage, nodes - 1}));
      all[0].is_finite = false;
      EXPECT_EQ(verdict(all, nodes).kind, Verdict::Kind::kNotFinite);
    }
  }
  EXPECT_EQ(verdict({{false, true, 1}, {false, true, 1}}, 2).kind, Verdict::Kind::kKeep);
}

TEST(Trailer, OneOtherDigestIsAlwaysSeen) {
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const int nodes = std::vector{2, 3, 8, 64, 256, 300}[random() % 6];
    const std::size_t members = 2 + random() % std::min<std::size_t>(nodes - 1, 40);
    const std::uint32_t digest = random();
    Trailers group(members, {true, true, digest});
    for (Trailer& t : group) t.takes_part = random() % 8 != 0;
    // Digests that are made to add up to the same: one up, one down.
    const std::uint32_t change = 1U << (random() % 32);
    const std::size_t a = random() % members, b = random() % members;
    if (random() % 2 == 0) {
      group[a].digest += change;
      group[b].digest -= change;
    } else {
      group[a].digest ^= change;
    }
    std::vector<std::uint32_t> seen;
    for (const Trailer& t : group) {
      if (t.takes_part) seen.push_back(t.digest);
    }
    const bool is_same = !seen.empty() && std::equal(seen.begin() + 1, seen.end(), seen.begin());
    const Verdict expected =
        is_same ? Verdict{Verdict::Kind::kAverage, static_cast<int>(seen.size())} : Verdict{};
    ASSERT_EQ(verdict(group, nodes), expected);
    std::shuffle(group.begin(), group.end(), random);  // the order of summation does not matter
    ASSERT_EQ(verdict(group, nodes), expected);
  }
}

TEST(Trailer, AnyBitsGiveAVerdict) {
  std::mt19937 random(8);
  for (int i = 0; i < 100'000; ++i) {
    const int nodes = static_cast<int>(1 + random() % 65536);
    std::vector<float> sum(trailer_elements(nodes));
    for (float& x : sum) {
      const std::uint32_t bits = random();
      std::memcpy(&x, &bits, sizeof x);
      if (random() % 2 == 0) x = static_cast<float>(random() % 100);
    }
    const Verdict v = read_trailer(sum.data(), nodes);
    if (v.kind == Verdict::Kind::kAverage) {
      EXPECT_GE(v.members, 1);
      EXPECT_LE(v.members, nodes);
    }
  }
}

struct NarrowCase {
  DataType type;
  reference::Layout layout;
};

class Convert : public ::testing::TestWithParam<NarrowCase> {};

TEST_P(Convert, EveryPatternIsExactAndComesBack) {
  const auto [type, layout] = GetParam();
  const reference::Format format(layout);
  std::vector<std::uint16_t> bits(65536 + 5);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(bits.size());
  const auto* from = reinterpret_cast<const std::byte*>(bits.data());
  widen(from, type, bits.size(), values.data());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const double expected = format.decode(bits[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(values[i])) << i;
    } else {
      ASSERT_EQ(values[i], expected) << i;
      ASSERT_EQ(std::signbit(values[i]), std::signbit(expected)) << i;
    }
  }
  std::vector<std::uint16_t> back(bits.size());
  narrow(values.data(), type, values.size(), reinterpret_cast<std::byte*>(back.data()));
  for (std::size_t i = 0; i < bits.size(); ++i) {
    ASSERT_EQ(back[i], std::isnan(values[i]) ? layout.canonical_nan : bits[i]) << i;
  }
}

TEST_P(Convert, RoundsToNearestEven) {
  const auto [type, layout] = GetParam();
  const reference::Format format(layout);
  std::mt19937 random(6);
  std::vector<float> values;
  for (int i = 0; i < 30'000; ++i) {
    const std::uint32_t bits = random();
    float x;
    std::memcpy(&x, &bits, sizeof x);
    // Half of them halfway between two numbers of the format.
    if (i % 2 == 0) {
      const unsigned pattern = random() % (format.sign_bit() - 1);
      x = static_cast<float>((format.decode(pattern) + format.decode(pattern + 1)) / 2);
    }
    values.push_back(x);
  }
  std::vector<ConvertKernels> sets{portable_converters()};
  if (is_available(Isa::kAvx2)) sets.push_back(avx2_converters());
  if (is_available(Isa::kNeon)) sets.push_back(neon_converters());
  for (const ConvertKernels& kernels : sets) {
    std::vector<std::uint16_t> got(values.size());
    auto* to = reinterpret_cast<std::byte*>(got.data());
    (type == DataType::kFloat16 ? kernels.narrow_half : kernels.narrow_bfloat16)(values.data(),
                                                                                 values.size(), to);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(got[i], std::isnan(values[i]) ? layout.canonical_nan : format.encode(values[i]))
          << values[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Convert,
                         ::testing::Values(NarrowCase{DataType::kFloat16, reference::kHalf},
                                           NarrowCase{DataType::kBfloat16, reference::kBfloat16}));

TEST(ConvertTypes, AreThoseOfGradients) {
  EXPECT_TRUE(supports(DataType::kFloat32));
  EXPECT_TRUE(supports(DataType::kFloat16));
  EXPECT_TRUE(supports(DataType::kBfloat16));
  EXPECT_FALSE(supports(DataType::kFloat64));
  EXPECT_FALSE(supports(DataType::kInt32));
  EXPECT_FALSE(supports(DataType::kFloat8E4m3));
}

}  // namespace
}  // namespace riffle::rules::trailer_test
