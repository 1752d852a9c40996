// Selection's kernels on the emulator against the processor's selection: the same entries, in the
// same order, and the same left over.
#include "sparse/cuda/selector.h"

#include <gtest/gtest.h>

#include "test/cuda/emulated_device.h"
#include "test/cuda/select_case.h"
#include "test/sanitized.h"

namespace riffle::sparse::cuda::cuda_select_test {
namespace {

std::vector<float> drawn(const Numbers& numbers, std::size_t count, std::mt19937& random) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = numbers.at(random, i);
  return values;
}

std::string named(const Numbers& numbers, const SelectCase& c) {
  return std::string(numbers.name) + ", " + std::to_string(c.count) + " elements of type " +
         std::to_string(static_cast<int>(c.element)) + ", k " + std::to_string(c.k);
}

TEST(CudaSelect, PicksWhatTheProcessorPicks) {
  std::mt19937 random(7);
  int number = 0;
  for (const Numbers& numbers : kinds_of_numbers()) {
    for (const std::size_t count : {0, 1, 31, 1000, 4097, 8193, 20011}) {
      const std::vector<float> values = drawn(numbers, count, random);
      for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
        for (const std::size_t k :
             {std::size_t{0}, std::size_t{1}, count / 100, count / 3, count}) {
          ++number;
          if (kIsSanitized ? number % 10 != 0 : count > 4097 && number % 5 != 0) continue;
          EmulatedDevice device(random(), 1 + number % 4);
          Selector selector(device);
          const SelectCase c{.gradient = stored(values, element),
                             .element = element,
                             .count = count,
                             .residual = {},
                             .k = k,
                             .has_short_indices = number % 3 == 0};
          EXPECT_EQ(compare(device, selector, c), "") << named(numbers, c);
        }
      }
    }
  }
}

// Many tiles, so that the scan goes over what one thread and one round of it hold.
TEST(CudaSelect, PicksFromManyTiles) {
  std::mt19937 random(8);
  const std::vector<Numbers> kinds = kinds_of_numbers();
  for (const std::size_t kind : {0, 3}) {
    EmulatedDevice device(random());
    Selector selector(device);
    const std::size_t count = 65 * kTile + 77;
    if (kIsSanitized && kind != 0) continue;
    const SelectCase c{.gradient = stored(drawn(kinds[kind], count, random), Element::kBfloat16),
                       .element = Element::kBfloat16,
                       .count = count,
                       .residual = {},
                       .k = count / 100};
    EXPECT_EQ(compare(device, selector, c), "") << named(kinds[kind], c);
  }
}

// The same Selector again and again, as from call to call: what it keeps must not show.
TEST(CudaSelect, AddsTheResidualAndLeavesWhatWasNotTaken) {
  std::mt19937 random(9);
  EmulatedDevice device;
  Selector selector(device);
  int number = 0;
  for (const Numbers& numbers : kinds_of_numbers()) {
    for (const std::size_t count : {5, 4096, 9001, 20011}) {
      for (const Element element : {Element::kFloat32, Element::kFloat16, Element::kBfloat16}) {
        ++number;
        if (kIsSanitized && number % 10 != 0) continue;
        const SelectCase c{.gradient = stored(drawn(numbers, count, random), element),
                           .element = element,
                           .count = count,
                           .residual = drawn(numbers, count, random),
                           .k = count / 50,
                           .has_short_indices = number % 2 == 0,
                           .sums_in_place = number % 4 < 2};
        EXPECT_EQ(compare(device, selector, c), "") << named(numbers, c);
      }
    }
  }
}

TEST(CudaSelect, TakesAllOfAMagnitude) {
  std::mt19937 random(10);
  EmulatedDevice device;
  Selector selector(device);
  int number = 0;
  for (const Numbers& numbers : kinds_of_numbers()) {
    for (const float least : {1e-45F, 0.25F, 2.0F, std::numeric_limits<float>::infinity()}) {
      ++number;
      if (kIsSanitized && number % 10 != 0) continue;
      const std::size_t count = 9001;
      SelectCase c{.gradient = stored(drawn(numbers, count, random), Element::kFloat16),
                   .element = Element::kFloat16,
                   .count = count,
                   .residual = {},
                   .least = magnitude_of(least)};
      if (number % 2 == 0) c.residual = drawn(numbers, count, random);
      EXPECT_EQ(compare(device, selector, c), "") << named(numbers, c) << ", least " << least;
    }
  }
}

// Of a heavy-tailed input the first look is the only one at all elements: later on every kernel but
// one reads candidates. That is what makes it fast, and what a wrong sample would silently lose.
TEST(CudaSelect, ThirteenLaunchesAndNoneWaitsForTheHost) {
  std::mt19937 random(11);
  EmulatedDevice device;
  Selector selector(device);
  const std::vector<float> values = drawn(kinds_of_numbers()[0], 20011, random);
  Buffer gradient(device), indices(device), result(device);
  for (Buffer* buffer : {&gradient, &indices, &result}) {
    ASSERT_TRUE(buffer->make_room(values.size() * 4).is_ok());
  }
  ASSERT_TRUE(device.copy_in(gradient.as<void>(), values.data(), values.size() * 4).is_ok());
  const Input input{gradient.as<void>(), Element::kFloat32, values.size(), nullptr, nullptr};
  ASSERT_TRUE(selector.top_k(input, 200, {indices.as<void>(), result.as<float>(), 200}).is_ok());
  EXPECT_EQ(device.launches(), 13U);
  EXPECT_EQ(*selector.finish(), 200U);
}

TEST(CudaSelect, SaysWhatItCannotDo) {
  EmulatedDevice device;
  Selector selector(device);
  const auto message = [&](const Input& input, const Output& output) {
    return selector.top_k(input, 1, output).message();
  };
  EXPECT_EQ(message({.count = kMostElements + 1}, {}),
            "selection on a GPU: the number of elements is 2147483649, accepted: up to 2147483648");
  EXPECT_EQ(message({.count = 65537}, {.has_short_indices = true}),
            "selection on a GPU: the number of elements with 2-byte indices is 65537, accepted: up "
            "to 65536");
  float number = 0;
  EXPECT_EQ(message({.count = 1, .residual = &number}, {}),
            "selection on a GPU: a residual and a sum belong together");
  EXPECT_EQ(selector.at_least({.count = 1}, 0, {}).message(),
            "selection on a GPU: the magnitude is 0, accepted: 1 to 2147483647");
  EXPECT_EQ(device.launches(), 0U);
}

TEST(CudaSelect, WithoutRoomNothingIsTaken) {
  EmulatedDevice device;
  Selector selector(device);
  std::mt19937 random(12);
  std::vector<float> gradient = drawn(kinds_of_numbers()[0], 9000, random);
  for (const std::size_t i : {7, 700, 7000}) gradient[i] = std::numeric_limits<float>::infinity();
  std::vector<float> sum(gradient.size(), 1.0F);
  std::vector<std::uint32_t> indices(2, 77);
  std::vector<float> values(2, 77.0F);
  const Input input{gradient.data(), Element::kFloat32, gradient.size(), sum.data(), sum.data()};
  ASSERT_TRUE(selector.top_k(input, 2, {indices.data(), values.data(), 2}).is_ok());
  EXPECT_EQ(selector.finish().status().message(),
            "selection on a GPU: the room for entries is 2, accepted: 3, so many there are");
  EXPECT_EQ(indices, std::vector<std::uint32_t>(2, 77));
  EXPECT_EQ(values, std::vector<float>(2, 77.0F));
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], gradient[i] + 1);
}

// Whether the comparison above sees a mistake, in one of a few tries.
bool is_seen(const EmulatedKernels& kernels) {
  std::mt19937 random(13);
  for (int attempt = 0; attempt < 5; ++attempt) {
    EmulatedDevice device(random(), 2, kernels);
    Selector selector(device);
    const std::vector<Numbers> kinds = kinds_of_numbers();
    const SelectCase c{.gradient = stored(drawn(kinds[0], 20011, random), Element::kFloat32),
                       .count = 20011,
                       .residual = {},
                       .k = 300};
    const Selected expected = by_processor(c);
    const Result<Selected> is = on_device(device, selector, c, c.count);
    if (!is || !difference(*is, expected).empty()) return true;
  }
  return false;
}

TEST(CudaSelect, PlantedMistakesAreSeen) {
  EXPECT_FALSE(is_seen(emulated_kernels()));
  EXPECT_TRUE(is_seen(kernels_without_barriers()));
  EXPECT_TRUE(is_seen(kernels_that_lose_additions()));
}

}  // namespace
}  // namespace riffle::sparse::cuda::cuda_select_test
