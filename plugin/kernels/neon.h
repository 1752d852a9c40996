// Conversions by NEON for the loops of reduce_loop.h and convert_kernels.h. Every 64-bit ARM
// processor has it, so that nothing has to be kept apart from other code (float_formats.h).
// Internal.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "plugin/kernels/float_formats.h"

namespace riffle {

struct Neon {
  static constexpr std::size_t kBytes = 16;
  using Floats = Vector<float, kBytes>;
  using Ints = Vector<std::int32_t, kBytes>;

  static uint16x4_t load16(const char* from) {
    uint16x4_t words;
    __builtin_memcpy(&words, from, sizeof words);
    return words;
  }
  static uint16x4_t load8(const char* from) {  // four bytes, each in 16 bits
    std::uint32_t bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return vget_low_u16(vmovl_u8(vcreate_u8(bytes)));
  }

  static Ints widen8(const char* from) { return (Ints)vmovl_u16(load8(from)); }
  static void narrow8(char* to, Ints v) {
    const uint16x4_t words = vmovn_u32((uint32x4_t)v);
    const auto bytes = (uint32x2_t)vmovn_u16(vcombine_u16(words, words));
    const std::uint32_t four = vget_lane_u32(bytes, 0);
    __builtin_memcpy(to, &four, sizeof four);
  }
  static Ints widen16(const char* from) { return (Ints)vmovl_u16(load16(from)); }
  static void narrow16(char* to, Ints v) {
    const uint16x4_t words = vmovn_u32((uint32x4_t)v);
    __builtin_memcpy(to, &words, sizeof words);
  }

  static Floats half(uint16x4_t bits) { return (Floats)vcvt_f32_f16((float16x4_t)bits); }
  // As in reduce_avx512.cc.
  static Floats load_float8(const char* from, E5m2Layout) {
    return half(vshl_n_u16(load8(from), 8));
  }
  static Floats load_float8(const char* from, E4m3Layout) {
    const int16x4_t shifted = vshr_n_s16((int16x4_t)vshl_n_u16(load8(from), 8), 1);
    const Floats v = half(vand_u16((uint16x4_t)shifted, vdup_n_u16(0xbfff))) * 256.0F;
    return ((Ints)v & 0x7fffffff) == 0x43f00000 ? Floats{} + __builtin_nanf("") : v;
  }
  static Floats load_half(const char* from) { return half(load16(from)); }
  static void store_half(char* to, Floats v) {
    const float16x4_t halves = vcvt_f16_f32((float32x4_t)v);
    __builtin_memcpy(to, &halves, sizeof halves);
  }
};

}  // namespace riffle
