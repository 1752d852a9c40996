// Scaling a sum over the survivors: against exact arithmetic, in every format, at any address.
#include "plugin/kernels/rescale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "test/plugin/kernels/float_reference.h"

namespace riffle::rescale_test {
namespace {

constexpr double kFactor = 8.0 / 7.0;

// All bit patterns of a narrow format, times the factor as float32, rounded once.
void check_narrow(DataType type, const reference::Layout& layout) {
  const reference::Format format(layout);
  const std::size_t bytes = size_of(type);
  for (unsigned bits = 0; bits < format.patterns(); ++bits) {
    unsigned got = bits;
    rescale(&got, 1, type, kFactor);
    const double value = format.decode(bits);
    const auto product = static_cast<float>(value) * static_cast<float>(kFactor);
    const unsigned expected = format.encode(static_cast<double>(product));
    EXPECT_EQ(got & ((1U << (8 * bytes)) - 1), expected) << bits << " is " << value;
  }
}

TEST(Rescale, NarrowFormats) {
  check_narrow(DataType::kFloat16, reference::kHalf);
  check_narrow(DataType::kBfloat16, reference::kBfloat16);
  check_narrow(DataType::kFloat8E4m3, reference::kE4m3);
  check_narrow(DataType::kFloat8E5m2, reference::kE5m2);
}

template <class T>
void check_wide(DataType type) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {0U, 1U, 3U, 4U, 7U, 1001U}) {
    for (const std::size_t shift : {0U, 1U, 3U}) {
      std::vector<std::byte> memory(count * sizeof(T) + shift + 8, std::byte{0x5a});
      std::vector<T> values(count);
      for (T& v : values) v = static_cast<T>(std::normal_distribution<double>(0, 1e3)(random));
      std::memcpy(memory.data() + shift, values.data(), count * sizeof(T));
      rescale(memory.data() + shift, count, type, kFactor);
      for (std::size_t i = 0; i < count; ++i) {
        T got;
        std::memcpy(&got, memory.data() + shift + i * sizeof(T), sizeof got);
        EXPECT_EQ(got, values[i] * static_cast<T>(kFactor));
      }
      for (std::size_t i = shift + count * sizeof(T); i < memory.size(); ++i) {
        EXPECT_EQ(memory[i], std::byte{0x5a});
      }
    }
  }
}

TEST(Rescale, WideFormats) {
  check_wide<float>(DataType::kFloat32);
  check_wide<double>(DataType::kFloat64);
}

// Nothing behind the last value of a narrow format is touched.
TEST(Rescale, KeepsWithinItsValues) {
  for (const DataType type :
       {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat8E4m3, DataType::kFloat8E5m2}) {
    for (std::size_t count = 0; count < 10; ++count) {
      std::vector<std::byte> memory(32, std::byte{0x21});
      rescale(memory.data(), count, type, 2);
      for (std::size_t i = count * size_of(type); i < memory.size(); ++i) {
        EXPECT_EQ(memory[i], std::byte{0x21});
      }
    }
  }
}

TEST(Rescale, OnlyFloatingPoint) {
  EXPECT_TRUE(is_floating(DataType::kFloat8E5m2));
  EXPECT_FALSE(is_floating(DataType::kInt64));
  std::int32_t x = 1;
  EXPECT_THROW(rescale(&x, 1, DataType::kInt32, 2), std::exception);
}

}  // namespace
}  // namespace riffle::rescale_test
