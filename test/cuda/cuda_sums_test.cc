// The kernels that add, on the emulator, against sparse/element.h and entries.h.
#include "sparse/cuda/sums.h"

#include <gtest/gtest.h>

#include "sparse/entries.h"
#include "test/cuda/emulated_device.h"
#include "test/cuda/numbers_of_tests.h"
#include "test/sanitized.h"

namespace riffle::sparse::cuda::cuda_sums_test {
namespace {

constexpr Element kAllElements[] = {Element::kFloat32, Element::kFloat16, Element::kBfloat16};

std::vector<float> drawn(std::size_t count, std::mt19937& random) {
  static const std::vector<Numbers> kinds = kinds_of_numbers();
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = kinds[random() % kinds.size()].at(random, i);
  return values;
}

TEST(CudaSums, ScatterAddsAsTheProcessorDoes) {
  std::mt19937 random(1);
  for (const std::size_t elements : {1, 300, 30000}) {
    for (const bool has_short_indices : {false, true}) {
      std::vector<float> dense = drawn(elements, random);
      std::vector<std::uint32_t> indices;
      for (std::uint32_t i = 0; i < elements; ++i) {
        if (random() % 3 == 0) indices.push_back(i);
      }
      const std::vector<std::uint16_t> narrow(indices.begin(), indices.end());
      const std::vector<float> values = drawn(indices.size(), random);
      std::vector<float> expected = dense;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        expected[indices[i]] = plus(expected[indices[i]], values[i]);
      }
      EmulatedDevice device(random());
      const void* const given = has_short_indices ? static_cast<const void*>(narrow.data())
                                                  : static_cast<const void*>(indices.data());
      ASSERT_TRUE(
          scatter_add(device, given, has_short_indices, values.data(), indices.size(), dense.data())
              .is_ok());
      for (std::size_t i = 0; i < elements; ++i) ASSERT_TRUE(is_same(dense[i], expected[i])) << i;
    }
  }
}

TEST(CudaSums, ReducesInFloat32InTheOrderOfTheInputs) {
  std::mt19937 random(2);
  for (const std::size_t number : {1, 2, 5, 16}) {
    for (const Element in : kAllElements) {
      for (const Element out : kAllElements) {
        for (const std::size_t count : {1, 255, 9000}) {
          if (kIsSanitized && count > 255) continue;
          std::vector<std::vector<std::uint8_t>> inputs;
          std::vector<const void*> pointers;
          for (std::size_t j = 0; j < number; ++j) {
            inputs.push_back(stored(drawn(count, random), in));
          }
          for (const auto& input : inputs) pointers.push_back(input.data());
          std::vector<std::uint8_t> expected(count * size_of(out)), is(expected.size());
          for (std::size_t i = 0; i < count; ++i) {
            float sum = load(pointers[0], in, i);
            for (std::size_t j = 1; j < number; ++j) sum = plus(sum, load(pointers[j], in, i));
            store(expected.data(), out, i, sum);
          }
          EmulatedDevice device(random());
          ASSERT_TRUE(reduce(device, pointers, in, count, is.data(), out).is_ok());
          ASSERT_EQ(is, expected) << number << " inputs of type " << static_cast<int>(in) << " to "
                                  << static_cast<int>(out);
        }
      }
    }
  }
}

TEST(CudaSums, EveryNarrowNumberIsWhatTheProcessorTakesItFor) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const Element element : {Element::kFloat16, Element::kBfloat16}) {
    EmulatedDevice device;
    std::vector<float> wide(all.size());
    const void* const input[] = {all.data()};
    ASSERT_TRUE(reduce(device, input, element, all.size(), wide.data(), Element::kFloat32).is_ok());
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(is_same(wide[i], load(all.data(), element, i))) << i;
    }
  }
}

// Numbers at, beside and between those that float16 and bfloat16 have.
TEST(CudaSums, RoundsAsTheProcessorDoes) {
  std::vector<float> wide;
  for (std::uint32_t high = 0; high < 65536; high += kIsSanitized ? 61 : 7) {
    for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      wide.push_back(std::bit_cast<float>(high << 16 | low));
    }
    const auto half = static_cast<std::uint16_t>(high);
    const float value = load(&half, Element::kFloat16, 0);
    for (const float factor : {1.0F, 1.00048828125F, 1.0004F, 0.9996F})
      wide.push_back(value * factor);
  }
  for (const Element element : {Element::kFloat16, Element::kBfloat16}) {
    EmulatedDevice device;
    std::vector<std::uint8_t> is(wide.size() * 2);
    const void* const input[] = {wide.data()};
    ASSERT_TRUE(reduce(device, input, Element::kFloat32, wide.size(), is.data(), element).is_ok());
    ASSERT_EQ(is, stored(wide, element));
  }
}

TEST(CudaSums, SaysWhatItCannotDo) {
  EmulatedDevice device;
  EXPECT_EQ(reduce(device, {}, Element::kFloat32, 1, nullptr, Element::kFloat32).message(),
            "sums on a GPU: the number of inputs is 0, accepted: 1 to 16");
  const std::vector<const void*> many(17);
  EXPECT_EQ(reduce(device, many, Element::kFloat32, 1, nullptr, Element::kFloat32).message(),
            "sums on a GPU: the number of inputs is 17, accepted: 1 to 16");
  EXPECT_EQ(scatter_add(device, nullptr, false, nullptr, std::size_t{1} << 32, nullptr).message(),
            "sums on a GPU: the number of elements is 4294967296, accepted: up to 2147483648");
  EXPECT_EQ(device.launches(), 0U);
}

}  // namespace
}  // namespace riffle::sparse::cuda::cuda_sums_test
