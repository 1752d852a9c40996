// Test-side view of NCCL's datatypes: decoding to double written straight from the formats'
// definitions (not with the kernels' conversions), random values, and the rounding unit of each
// type.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "plugin/kernels/types.h"

namespace riffle::testing {

inline bool is_float(DataType t) {
  return t == DataType::kFloat16 || t == DataType::kFloat32 || t == DataType::kFloat64 ||
         t == DataType::kBfloat16 || t == DataType::kFloat8E4m3 || t == DataType::kFloat8E5m2;
}

// sign, exponent, mantissa of an IEEE-like format with the given widths (no Inf/NaN handling).
inline double decode_minifloat(std::uint64_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint64_t mantissa = bits & ((1ull << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1ull << exponent_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1 : 1;
  const double scale = std::ldexp(1.0, -mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa) * scale, 1 - bias);
  return sign * std::ldexp(1.0 + static_cast<double>(mantissa) * scale, exponent - bias);
}

// All encodings of a format of at most 16 bits.
struct Minifloats {
  std::vector<double> values;
  std::vector<std::uint16_t> moderate;  // those of magnitude 0.5 .. 2, of float8 0.75 .. 1.25
};

template <int kExponentBits, int kMantissaBits>
const Minifloats& minifloats() {
  static const Minifloats all = [] {
    constexpr int kBits = 1 + kExponentBits + kMantissaBits;
    const double low = kBits == 8 ? 0.75 : 0.5, high = kBits == 8 ? 1.25 : 2.0;
    Minifloats made;
    for (std::uint32_t bits = 0; bits < 1U << kBits; ++bits) {
      made.values.push_back(decode_minifloat(bits, kExponentBits, kMantissaBits));
      const double magnitude = std::fabs(made.values.back());
      if (magnitude >= low && magnitude <= high) {
        made.moderate.push_back(static_cast<std::uint16_t>(bits));
      }
    }
    return made;
  }();
  return all;
}

// nullptr: a type of another kind.
inline const Minifloats* minifloats_of(DataType t) {
  switch (t) {
    case DataType::kFloat16:
      return &minifloats<5, 10>();
    case DataType::kBfloat16:
      return &minifloats<8, 7>();
    case DataType::kFloat8E4m3:
      return &minifloats<4, 3>();
    case DataType::kFloat8E5m2:
      return &minifloats<5, 2>();
    default:
      return nullptr;
  }
}

inline double decode(const std::byte* p, DataType t) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, p, size_of(t));
  if (const Minifloats* all = minifloats_of(t)) return all->values[bits];
  if (t == DataType::kFloat32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (t == DataType::kFloat64) return std::bit_cast<double>(bits);
  return 0;  // integers are compared exactly, not as doubles
}

// Half a unit in the last place, relative.
inline double rounding_unit(DataType t) {
  switch (t) {
    case DataType::kFloat16:
      return std::ldexp(1, -11);
    case DataType::kBfloat16:
      return std::ldexp(1, -8);
    case DataType::kFloat8E4m3:
      return std::ldexp(1, -4);
    case DataType::kFloat8E5m2:
      return std::ldexp(1, -3);
    case DataType::kFloat32:
      return std::ldexp(1, -24);
    case DataType::kFloat64:
      return std::ldexp(1, -53);
    default:
      return 0;
  }
}

// Smallest positive value, for results that end up denormal.
inline double smallest(DataType t) {
  switch (t) {
    case DataType::kFloat16:
      return std::ldexp(1, -24);
    case DataType::kBfloat16:
      return std::ldexp(1, -133);
    case DataType::kFloat8E4m3:
      return std::ldexp(1, -9);
    case DataType::kFloat8E5m2:
      return std::ldexp(1, -16);
    case DataType::kFloat32:
      return std::ldexp(1, -149);
    default:
      return 0;
  }
}

inline std::uint64_t integer_bits(const std::byte* p, DataType t) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, p, size_of(t));
  return bits;
}

inline bool is_signed_integer(DataType t) {
  return t == DataType::kInt8 || t == DataType::kInt32 || t == DataType::kInt64;
}

inline std::int64_t sign_extend(std::uint64_t bits, std::size_t bytes) {
  const int shift = static_cast<int>(64 - 8 * bytes);
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

// Random elements: any integer; floats of magnitude 0.5 .. 2, so that products of 16 stay in range
// of every format but float8 e4m3, where they may saturate (0.75 .. 1.25 there).
template <class Random>
void fill_random(std::byte* p, std::size_t count, DataType t, Random& random) {
  const Minifloats* all = minifloats_of(t);
  const std::size_t size = size_of(t);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = random();
    const double magnitude = 0.5 + static_cast<double>(bits >> 12) * 0x1.8p-52;
    const double drawn = (bits & 1) != 0 ? -magnitude : magnitude;
    if (all != nullptr) {
      bits = all->moderate[bits % all->moderate.size()];
    } else if (t == DataType::kFloat32) {
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(drawn));
    } else if (t == DataType::kFloat64) {
      bits = std::bit_cast<std::uint64_t>(drawn);
    }
    std::memcpy(p + i * size, &bits, size);
  }
}

}  // namespace riffle::testing
