#include "sparse/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>

#include "sparse/half.h"
#include "test/plugin/kernels/float_reference.h"
#include "test/sanitized.h"
#include "test/selection_inputs.h"

namespace riffle::sparse::sparse_select_test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Picked = std::vector<std::pair<std::uint32_t, float>>;

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (const Isa isa : kIsas) {
    if (sparse::is_available(isa)) all.push_back(isa);
  }
  return all;
}

Bytes stored(const std::vector<float>& values, Element element) {
  Bytes bytes(values.size() * size_of(element));
  for (std::size_t i = 0; i < values.size(); ++i) store(bytes.data(), element, i, values[i]);
  return bytes;
}

// By sorting: larger magnitudes first, of equal ones lower indices; no zeros, all infinities.
Picked reference(const Bytes& data, Element element, std::size_t count, std::size_t k) {
  Picked all;
  for (std::size_t i = 0; i < count; ++i) {
    const float v = load(data.data(), element, i);
    if (v != 0) all.emplace_back(i, v);
  }
  std::ranges::stable_sort(all, std::greater<>(),
                           [](const auto& e) { return magnitude_of(e.second); });
  while (k < all.size() && !std::isfinite(all[k].second)) ++k;
  all.resize(std::min(k, all.size()));
  std::ranges::sort(all, {}, [](const auto& e) { return e.first; });
  return all;
}

Picked picked(const Entries& entries) {
  Picked all;
  for (std::size_t i = 0; i < entries.count(); ++i) {
    all.emplace_back(entries.indices()[i], entries.values()[i]);
  }
  return all;
}

bool same(const Picked& a, const Picked& b) {  // NaN equals NaN
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first &&
           (x.second == y.second || (std::isnan(x.second) && std::isnan(y.second)));
  });
}

TEST(SparseSelect, EveryInstructionSetPicksTheTopK) {
  std::mt19937 random(7);
  for (const Numbers& kind : kinds_of_numbers()) {
    for (const std::size_t count : {0, 1, 15, 64, 1000, 4096, 4097, 20011, 70000}) {
      if (kIsSanitized && count > 20011) continue;
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = kind.at(random, i);
      for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
        const Bytes data = stored(values, element);
        for (const std::size_t k :
             {std::size_t{0}, std::size_t{1}, count / 100, count / 3, count}) {
          const Picked expected = reference(data, element, count, k);
          for (const Isa isa : isas()) {
            Selector selector(isa);
            Entries entries;
            selector.top_k(data.data(), element, count, k, entries);
            EXPECT_TRUE(same(picked(entries), expected))
                << kind.name << ", " << count << " elements of type " << static_cast<int>(element)
                << ", k " << k << ", " << name_of(isa) << ": " << entries.count()
                << " entries, not " << expected.size();
          }
        }
      }
    }
  }
}

// Also where it finds more than it had room for, and nothing at all.
TEST(SparseSelect, AtLeastPicksAllOfThatMagnitude) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {0, 1, 100, 4097, 30000}) {
    std::vector<float> values(count);
    for (float& v : values) v = normal(random);
    for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
      const Bytes data = stored(values, element);
      for (const float least : {0.0F, 0.1F, 2.0F, 100.0F}) {
        Picked expected;
        for (std::size_t i = 0; i < count; ++i) {
          const float v = load(data.data(), element, i);
          if (v != 0 && std::fabs(v) >= least) expected.emplace_back(i, v);
        }
        for (const Isa isa : isas()) {
          Entries entries;
          Selector(isa).at_least(data.data(), element, count, magnitude_of(least), entries);
          EXPECT_TRUE(same(picked(entries), expected))
              << count << " elements of type " << static_cast<int>(element) << ", " << least << ", "
              << name_of(isa) << ": " << entries.count() << ", not " << expected.size();
        }
      }
    }
  }
}

TEST(SparseSelect, ReuseStaysWithinAQuarterOfKWhateverTheInputDoes) {
  constexpr std::size_t kCount = 30000;
  std::mt19937 random(3);
  for (const std::size_t k : {1, 3, 30, 300, 3000}) {
    Selector selector;
    Entries entries;
    Threshold threshold;
    std::normal_distribution<float> normal;
    float scale = 1;
    for (int call = 0; call < 60; ++call) {
      scale *= call % 20 == 19 ? 100.0F : 0.99F;  // sometimes a jump
      std::vector<float> values(kCount);
      for (float& v : values) v = normal(random) * scale;
      selector.near_top_k(values.data(), Element::kFloat32, kCount, k, threshold, entries);
      EXPECT_GE(entries.count(), least_accepted(k));
      EXPECT_LE(entries.count(), most_accepted(k));
      // Whatever the threshold was, what it kept is the top of the input.
      const Bytes data = stored(values, Element::kFloat32);
      EXPECT_TRUE(
          same(picked(entries), reference(data, Element::kFloat32, kCount, entries.count())));
    }
    EXPECT_EQ(threshold.exact_calls + threshold.reused_calls, 60U);
    // Three jumps and the first call are no fault; for k below 4 only k itself is accepted.
    if (k >= 300) {
      EXPECT_LE(threshold.exact_calls, 8U) << "k " << k;
    }
  }
}

TEST(SparseSelect, ReuseTakesAllThereIsWhereLessThanKIsNotZero) {
  std::vector<float> values(10000);
  for (std::size_t i = 0; i < values.size(); i += 500) values[i] = 1.0F + static_cast<float>(i);
  Selector selector;
  Entries entries;
  Threshold threshold;
  for (int call = 0; call < 3; ++call) {
    selector.near_top_k(values.data(), Element::kFloat32, values.size(), 100, threshold, entries);
    EXPECT_EQ(entries.count(), 20U);
  }
  EXPECT_EQ(threshold.exact_calls, 1U);
}

TEST(SparseSelect, AThresholdThatLetTooManyInIsPutRightForTheNextCall) {
  std::vector<float> values(10000);
  std::iota(values.begin(), values.end(), 0.0F);
  Selector selector;
  Entries entries;
  Threshold threshold{.magnitude = magnitude_of(9800)};  // 200 reach it
  selector.near_top_k(values.data(), Element::kFloat32, values.size(), 100, threshold, entries);
  EXPECT_EQ(entries.count(), 100U);
  EXPECT_EQ(threshold.exact_calls, 0U);
  EXPECT_EQ(threshold.magnitude, magnitude_of(9900));
}

TEST(SparseSelect, KeepTopKSharesOutWhatItWasGiven) {
  std::mt19937 random(5);
  Entries entries, dropped;
  Bytes values;
  std::vector<float> dense(500);
  for (std::uint32_t i = 0; i < dense.size(); i += 2) {
    dense[i] = static_cast<float>(random() % 40) + 1;
    entries.append(i, dense[i]);
  }
  const Picked before = picked(entries);
  const Picked expected = reference(stored(dense, Element::kFloat32), Element::kFloat32, 500, 60);
  Selector selector;
  selector.keep_top_k(entries, 60, dropped);
  EXPECT_EQ(picked(entries), expected);
  Picked together = picked(entries);
  const Picked rest = picked(dropped);
  together.insert(together.end(), rest.begin(), rest.end());
  EXPECT_TRUE(std::ranges::is_sorted(rest));
  std::ranges::sort(together);
  EXPECT_EQ(together, before);
}

TEST(SparseSelect, AccumulateAddsInFloat32) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {0, 1, 7, 16, 33, 1000}) {
    std::vector<float> gradient(count), residual(count);
    for (float& v : gradient) v = normal(random);
    for (float& v : residual) v = normal(random);
    for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
      const Bytes data = stored(gradient, element);
      for (const Isa isa : isas()) {
        std::vector<float> sum(count);
        Selector(isa).accumulate(data.data(), element, residual.data(), count, sum.data());
        for (std::size_t i = 0; i < count; ++i) {
          EXPECT_EQ(sum[i], load(data.data(), element, i) + residual[i]);
        }
      }
    }
  }
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

TEST(SparseSelect, OnePassAccumulatesAndCollectsAsTwoPassesDo) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {0, 1, 15, 64, 65, 127, 1000}) {
    std::vector<float> gradient(count), residual(count);
    for (float& v : gradient) v = normal(random);
    for (float& v : residual) v = normal(random);
    if (count > 20) gradient[20] = std::numeric_limits<float>::quiet_NaN();
    for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
      const Bytes data = stored(gradient, element);
      for (const Isa isa : isas()) {
        const Selector selector(isa);
        std::vector<float> sum(count);
        Entries expected;
        selector.accumulate(data.data(), element, residual.data(), count, sum.data());
        for (const float least : {0.0F, 1.0F, 1.5F, 100.0F}) {
          selector.at_least(sum.data(), Element::kFloat32, count, magnitude_of(least), expected);
          for (const std::size_t most : {std::size_t{0}, expected.count() / 2, expected.count()}) {
            const std::size_t offset = random() % 17;  // alignment
            std::vector<float> room(offset + count + 1, -1);
            float* const out = room.data() + offset;
            Entries found;
            const bool is_complete =
                selector.accumulate_and_collect(data.data(), element, residual.data(), count, out,
                                                magnitude_of(least), most, found);
            EXPECT_EQ(std::ranges::count(room, -1), offset + 1);
            EXPECT_EQ(is_complete, expected.count() <= most);
            EXPECT_TRUE(same_bits({out, count}, sum));
            ASSERT_EQ(found.count(), is_complete ? expected.count() : 0);
            EXPECT_TRUE(
                std::ranges::equal(found.indices(), expected.indices().first(found.count())));
            EXPECT_TRUE(same_bits(found.values(), expected.values().first(found.count())));
          }
        }
      }
    }
  }
}

TEST(SparseElement, NarrowFormatsAreWhatTheirDefinitionSays) {
  for (const Element element : {Element::kFloat16, Element::kBfloat16}) {
    const riffle::reference::Format format(
        element == Element::kFloat16 ? riffle::reference::kHalf : riffle::reference::kBfloat16);
    std::mt19937 random(13);
    for (unsigned bits = 0; bits < 65536; ++bits) {
      const auto narrow = static_cast<std::uint16_t>(bits);
      const float wide = load(&narrow, element, 0);
      const double expected = format.decode(bits);
      ASSERT_TRUE(wide == expected || (std::isnan(wide) && std::isnan(expected))) << bits;
      if (!std::isfinite(wide)) continue;
      // The value itself, and what lies beside it and between it and the next one.
      const float next = std::nextafter(wide, std::numeric_limits<float>::infinity());
      const float beyond = wide * (1 + std::ldexp(static_cast<float>(random() % 1024), -20));
      for (const float value : {wide, next, beyond, wide * 1.00048828125F}) {
        std::uint16_t rounded = 0;
        store(&rounded, element, 0, value);
        ASSERT_EQ(rounded, format.encode(value)) << value;
        if (element == Element::kBfloat16 && std::fabs(value) < 3.38e38F) {
          std::uint16_t direct = 0;
          store(&direct, element, 0, rounded_to_bfloat16(value));
          ASSERT_EQ(direct, rounded) << value;
        }
      }
    }
  }
  EXPECT_EQ(rounded_to_bfloat16(-std::numeric_limits<float>::max()), -0x1.fep127F);
  EXPECT_TRUE(std::isinf(rounded_to_bfloat16(std::numeric_limits<float>::infinity())));
}

}  // namespace
}  // namespace riffle::sparse::sparse_select_test
