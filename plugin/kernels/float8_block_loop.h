// The loops over blocks of float8_block.h, one set per instruction set. Internal.
//
// A block's group of 32 is loaded from all operands before it is stored, so that dst may be any of
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/kernels/reduce_kernels.h"

namespace riffle {

// `Isa` and `Format` as in reduce_loop.h: `Format` is float8 E4M3.
template <class Isa, class Format>
struct Float8BlockLoop {
  using Vec = typename Format::Vec;
  using Ints = typename Format::Ints;
  static constexpr std::size_t kGroup = 32, kGroups = kFloat8BlockElements / kGroup;
  static constexpr std::size_t kLanes = sizeof(Vec) / sizeof(float), kVectors = kGroup / kLanes;
  static_assert(kGroups + kFloat8BlockElements == kFloat8BlockBytes);

  static constexpr std::int32_t kNotFinite = 0x7f800000;  // and above
  static constexpr std::uint8_t kNoNumber = 255;          // scale
  // Codes go up to 448 = 1.75 x 2^8: with a mantissa above 1.75 it takes one power of two more.
  static constexpr std::int32_t kCarry = 0x1fffff;
  static constexpr std::int32_t kLargestExponent = 8;

  static float power(std::uint32_t biased) {
    const std::uint32_t bits = biased == kNoNumber ? 0x7fc00000U : biased << 23;
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  }

  static void load(const char* block, std::size_t group, Vec* to) {
    const Vec factor = Vec{} + power(static_cast<std::uint8_t>(block[group]));
    const char* codes = block + kGroups + group * kGroup;
    for (std::size_t v = 0; v < kVectors; ++v) to[v] = Format::load(codes + v * kLanes) * factor;
  }

  static void store(char* block, std::size_t group, const Vec* from) {
    Ints most{};
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Ints magnitude = (Ints)from[v] & 0x7fffffff;
      most = magnitude > most ? magnitude : most;
    }
    std::int32_t largest = 0;
    for (std::size_t i = 0; i < kLanes; ++i) largest = most[i] > largest ? most[i] : largest;
    char* codes = block + kGroups + group * kGroup;
    if (largest >= kNotFinite) {
      block[group] = static_cast<char>(kNoNumber);
      __builtin_memset(codes, 0, kGroup);
      return;
    }
    const std::int32_t exponent = ((largest + kCarry) >> 23) - kLargestExponent;
    const std::int32_t scale = exponent < 1 ? 1 : exponent;
    block[group] = static_cast<char>(scale);
    const Vec inverse = Vec{} + power(static_cast<std::uint32_t>(254 - scale));
    for (std::size_t v = 0; v < kVectors; ++v) Format::store(codes + v * kLanes, from[v] * inverse);
  }

  static void sum(void* dst, const void* const* sources, std::size_t operands, std::size_t count) {
    for (std::size_t b = 0; b < count; ++b) {
      const std::size_t at = b * kFloat8BlockBytes;
      for (std::size_t group = 0; group < kGroups; ++group) {
        Vec result[kVectors];
        load(static_cast<const char*>(sources[0]) + at, group, result);
        for (std::size_t k = 1; k < operands; ++k) {
          Vec next[kVectors];
          load(static_cast<const char*>(sources[k]) + at, group, next);
          for (std::size_t v = 0; v < kVectors; ++v) result[v] += next[v];
        }
        store(static_cast<char*>(dst) + at, group, result);
      }
    }
  }

  static void pack(const float* from, std::size_t blocks, char* to) {
    for (std::size_t b = 0; b < blocks; ++b, to += kFloat8BlockBytes) {
      for (std::size_t group = 0; group < kGroups; ++group, from += kGroup) {
        Vec numbers[kVectors];
        __builtin_memcpy(numbers, from, sizeof numbers);
        store(to, group, numbers);
      }
    }
  }

  static void unpack(const char* from, std::size_t blocks, float* to) {
    for (std::size_t b = 0; b < blocks; ++b, from += kFloat8BlockBytes) {
      for (std::size_t group = 0; group < kGroups; ++group, to += kGroup) {
        Vec numbers[kVectors];
        load(from, group, numbers);
        __builtin_memcpy(to, numbers, sizeof numbers);
      }
    }
  }
};

}  // namespace riffle
