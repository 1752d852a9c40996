// float16, bfloat16 and float8 to and from float32 by integer arithmetic: no branches that depend
// on the value in the sixteen-bit conversions, so that loops over them vectorise on any x86-64.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace riffle::host {

struct Half {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};
struct Float8E4m3 {
  std::uint8_t bits;
};
struct Float8E5m2 {
  std::uint8_t bits;
};

inline float to_float(Bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

inline Bfloat16 to_bfloat16(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return {static_cast<std::uint16_t>(f != f ? (u >> 16) | 0x40 : rounded)};
}

// Scaling by 2^112 moves the exponent bias from 15 to 127 and normalises subnormals for free.
inline float to_float(Half x) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(x.bits & 0x7fff) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = magnitude | 0x7f800000;  // infinity and NaN keep their mantissa
  const std::uint32_t bits =
      magnitude >= 0x0f800000 ? special : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(bits | static_cast<std::uint32_t>(x.bits & 0x8000) << 16);
}

// Round to nearest even: subnormals by the float adder (adding 0.5 aligns their last bit), normals
// by an integer addition that carries into the exponent.
inline Half to_half(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t magnitude = u & 0x7fffffff;
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000;
  const std::uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  std::uint32_t bits = magnitude < 0x38800000 ? subnormal : normal;
  bits = magnitude >= 0x477ff000 ? 0x7c00 : bits;
  bits = magnitude > 0x7f800000 ? 0x7e00 : bits;
  return {static_cast<std::uint16_t>(bits | ((u >> 16) & 0x8000))};
}

inline float to_float(Float8E5m2 x) {
  return to_float(Half{static_cast<std::uint16_t>(x.bits << 8)});
}

inline float to_float(Float8E4m3 x) {
  const int exponent = (x.bits >> 3) & 15, mantissa = x.bits & 7;
  float v;
  if (exponent == 15 && mantissa == 7)
    v = NAN;
  else if (exponent == 0)
    v = std::ldexp(static_cast<float>(mantissa), -9);
  else
    v = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (x.bits & 0x80) != 0 ? -v : v;
}

// Nearest even on a grid of 2^(e - mantissa_bits), saturating at the largest finite value.
inline float round_to_grid(float magnitude, int mantissa_bits, int exponent_min, float largest) {
  if (magnitude >= largest) return largest;
  int e = magnitude == 0 ? exponent_min : std::max(std::ilogb(magnitude), exponent_min);
  const float step = std::ldexp(1.0f, e - mantissa_bits);
  return std::min(std::nearbyint(magnitude / step) * step, largest);
}

inline Float8E4m3 to_e4m3(float f) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(f) ? 0x80 : 0);
  if (f != f) return {static_cast<std::uint8_t>(sign | 0x7f)};
  const float m = round_to_grid(std::fabs(f), 3, -6, 448.0f);
  if (m < 0x1p-6f) return {static_cast<std::uint8_t>(sign | static_cast<int>(m * 0x1p9f))};
  const int e = std::ilogb(m);
  const int mantissa = static_cast<int>(std::ldexp(m, 3 - e)) - 8;
  return {static_cast<std::uint8_t>(sign | (e + 7) << 3 | mantissa)};
}

inline Float8E5m2 to_e5m2(float f) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(f) ? 0x80 : 0);
  if (f != f) return {static_cast<std::uint8_t>(sign | 0x7e)};
  const float m = round_to_grid(std::fabs(f), 2, -14, 57344.0f);
  return {static_cast<std::uint8_t>(sign | to_half(m).bits >> 8)};
}

}  // namespace riffle::host
