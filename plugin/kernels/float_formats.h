// The narrow floating-point formats, converted to and from vectors of float32 with integer
// operations: exact one way, rounded to nearest even the other. Subnormal numbers go through one
// float32 addition with a power of two whose last place is the format's last place (F. Giesen,
// "float->half variants", 2012), which needs the default rounding mode (reduce.cc sees to it).
//
// Everything is a member of a template over an instruction set that lives in an anonymous namespace
// of its source file. So each instance is local to that file, and the linker can never pick code
// with AVX for a processor without.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle {

template <class T, std::size_t bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));  // NOLINT: `using` takes no dependent size
};
template <class T, std::size_t bytes>
using Vector = typename VectorOf<T, bytes>::type;

// The layout of a format: sign, exponent, mantissa. Infinities exist where the largest exponent is
// reserved; where conversions saturate, values beyond max_finite and infinities become max_finite.
struct HalfLayout {
  static constexpr int kExponentBits = 5;
  static constexpr int kMantissaBits = 10;
  static constexpr int kBias = 15;
  static constexpr bool kReservesLargestExponent = true;
  static constexpr bool kSaturates = false;
  static constexpr std::int32_t kNan = 0x7e00;
  static constexpr float kMaxFinite = 65504.0F;
};
struct E4m3Layout {
  static constexpr int kExponentBits = 4;
  static constexpr int kMantissaBits = 3;
  static constexpr int kBias = 7;
  static constexpr bool kReservesLargestExponent = false;  // only all ones is NaN
  static constexpr bool kSaturates = true;
  static constexpr std::int32_t kNan = 0x7f;
  static constexpr float kMaxFinite = 448.0F;
};
struct E5m2Layout {
  static constexpr int kExponentBits = 5;
  static constexpr int kMantissaBits = 2;
  static constexpr int kBias = 15;
  static constexpr bool kReservesLargestExponent = true;
  static constexpr bool kSaturates = true;
  static constexpr std::int32_t kNan = 0x7e;
  static constexpr float kMaxFinite = 57344.0F;
};

template <class Isa, class Layout>
struct NarrowFloat {
  using Floats = Vector<float, Isa::kBytes>;
  using Ints =
      Vector<std::int32_t, Isa::kBytes>;  // signed: its comparisons are single instructions

  static constexpr int kShift = 23 - Layout::kMantissaBits;
  static constexpr int kWidth = Layout::kExponentBits + Layout::kMantissaBits;  // without the sign
  static constexpr std::int32_t kMagnitude = (1 << kWidth) - 1;
  static constexpr std::int32_t kLargestExponent = ((1 << Layout::kExponentBits) - 1) << 23;
  static constexpr std::int32_t kRebias = (127 - Layout::kBias) << 23;
  static constexpr std::int32_t kInfinity32 = 0x7f800000;
  static constexpr std::int32_t kNan32 = 0x7fc00000;

  static Floats decode(Ints bits) {
    const Ints magnitude = (bits & kMagnitude) << kShift;
    const Ints sign = (bits >> kWidth) << 31;
    const Ints normal = magnitude + kRebias;
    constexpr std::int32_t kSmallestNormal = kRebias + (1 << 23);
    const Floats subnormal = (Floats)(normal + (1 << 23)) - (Floats)(Ints{} + kSmallestNormal);
    Ints value = magnitude < (1 << 23) ? (Ints)subnormal : normal;
    if constexpr (Layout::kReservesLargestExponent) {
      value = magnitude >= kLargestExponent ? (magnitude | kInfinity32) : value;
    } else {
      value = magnitude == (kMagnitude << kShift) ? (Ints{} + kNan32) : value;
    }
    return (Floats)(value | sign);
  }

  static Ints encode(Floats value) {
    const Ints bits = (Ints)value;
    const Ints sign = (bits >> 31) & (1 << kWidth);
    Ints magnitude = bits & 0x7fffffff;
    const Ints is_nan = magnitude > kInfinity32;
    if constexpr (Layout::kSaturates) {
      const Ints limit = (Ints)(Floats{} + Layout::kMaxFinite);
      magnitude = magnitude > limit ? limit : magnitude;
    }
    const Ints odd = (magnitude >> kShift) & 1;
    const Ints normal = (magnitude - kRebias + ((1 << (kShift - 1)) - 1) + odd) >> kShift;
    constexpr std::int32_t kLastPlaceAligned = kRebias + ((kShift + 1) << 23);
    const Ints aligner = Ints{} + kLastPlaceAligned;
    const Ints subnormal = (Ints)((Floats)magnitude + (Floats)aligner) - aligner;
    Ints result = magnitude < kRebias + (1 << 23) ? subnormal : normal;
    if constexpr (!Layout::kSaturates) {
      constexpr std::int32_t kInfinity = kMagnitude & ~((1 << Layout::kMantissaBits) - 1);
      result = magnitude >= kRebias + kLargestExponent ? (Ints{} + kInfinity) : result;
    }
    result |= sign;
    return is_nan ? (Ints{} + Layout::kNan) : result;
  }
};

}  // namespace riffle
