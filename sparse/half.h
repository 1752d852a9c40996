// float16 to and from float32, one element at a time, with integer operations.
#pragma once

#include <cstdint>
#include <cstring>

namespace riffle::sparse {

inline float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {  // zero and subnormal: mantissa * 2^-24, exact
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t bits =
      sign | (mantissa << 13) | (exponent == 0x1f ? 0x7f800000U : (exponent + 112) << 23);
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// To nearest, ties to even; NaN becomes the one quiet NaN.
inline std::uint16_t to_half(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7e00;
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // >= 65520
  if (magnitude < 0x38800000U) {  // below the least normal number: a multiple of 2^-24
    float value;
    std::memcpy(&value, &magnitude, sizeof value);
    value += 0.5F;  // whose last place is 2^-24
    std::uint32_t aligned;
    std::memcpy(&aligned, &value, sizeof aligned);
    return static_cast<std::uint16_t>(sign | (aligned - 0x3f000000U));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1U;
  return static_cast<std::uint16_t>(sign | ((magnitude - (112U << 23) + 0xfffU + odd) >> 13));
}

}  // namespace riffle::sparse
