// Element types on the device: the same values, bit for bit, as sparse/element.h and sparse/half.h
// give on the processor. Integer operations, so that this compiles and agrees everywhere.
#pragma once

#include "sparse/cuda/arguments.h"

namespace riffle::sparse::cuda {

constexpr unsigned kMagnitudeBits = 0x7fffffff;
constexpr unsigned kInfinity = 0x7f800000;
constexpr unsigned kQuietNan = 0x7fc00000;

__device__ inline unsigned magnitude_bits(float x) { return __float_as_uint(x) & kMagnitudeBits; }

__device__ inline float plus_canonical(float first, float second) {
  const float sum = first + second;
  return sum == sum ? sum : __uint_as_float(kQuietNan);
}

__device__ inline float widened_half(unsigned short half) {
  const unsigned sign = (half & 0x8000U) << 16;
  const unsigned bits = (half & 0x7fffU) << 13;
  if ((half & 0x7c00U) == 0x7c00U) return __uint_as_float(sign | bits | kInfinity);
  // The exponent's bias grows by 112; exact, also for subnormals.
  return __uint_as_float(sign | __float_as_uint(__uint_as_float(bits) * 0x1p112F));
}

__device__ inline float widened_bfloat(unsigned short bits) {
  return __uint_as_float(static_cast<unsigned>(bits) << 16);
}

// To nearest, ties to even; NaN becomes the one quiet NaN, too large a number infinity.
__device__ inline unsigned short narrowed_half(float x) {
  const unsigned bits = __float_as_uint(x);
  const unsigned sign = (bits >> 16) & 0x8000U;
  const unsigned magnitude = bits & kMagnitudeBits;
  if (magnitude > kInfinity) return 0x7e00;
  if (magnitude >= 0x477ff000U) return static_cast<unsigned short>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {  // a multiple of 2^-24, the last place of one half
    const unsigned aligned = __float_as_uint(__uint_as_float(magnitude) + 0.5F);
    return static_cast<unsigned short>(sign | (aligned - 0x3f000000U));
  }
  const unsigned odd = (magnitude >> 13) & 1U;
  return static_cast<unsigned short>(sign | ((magnitude - (112U << 23) + 0xfffU + odd) >> 13));
}

__device__ inline unsigned short narrowed_bfloat(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & kMagnitudeBits) > kInfinity) return kQuietNan >> 16;
  return static_cast<unsigned short>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

struct Float32 {
  using Stored = float;
  __device__ static float wide(float x) { return x; }
  __device__ static float narrow(float x) { return x; }
};
struct Float16 {
  using Stored = unsigned short;
  __device__ static float wide(unsigned short x) { return widened_half(x); }
  __device__ static unsigned short narrow(float x) { return narrowed_half(x); }
};
struct Bfloat16 {
  using Stored = unsigned short;
  __device__ static float wide(unsigned short x) { return widened_bfloat(x); }
  __device__ static unsigned short narrow(float x) { return narrowed_bfloat(x); }
};

// use(Float32()) or another, as `element` (sparse::Element) says.
template <class Use>
__device__ void with_format(unsigned element, const Use& use) {
  if (element == 0) {
    use(Float32());
  } else if (element == 1) {
    use(Float16());
  } else {
    use(Bfloat16());
  }
}

}  // namespace riffle::sparse::cuda
