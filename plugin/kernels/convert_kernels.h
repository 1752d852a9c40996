// The loops behind convert.h, one set per instruction set. Internal.
#pragma once

#include <cstddef>
#include <cstring>

#include "plugin/kernels/reduce_loop.h"

namespace riffle::rules {

struct ConvertKernels {
  void (*widen_half)(const std::byte* from, std::size_t count, float* to);
  void (*narrow_half)(const float* from, std::size_t count, std::byte* to);
  void (*widen_bfloat16)(const std::byte* from, std::size_t count, float* to);
  void (*narrow_bfloat16)(const float* from, std::size_t count, std::byte* to);
};

ConvertKernels portable_converters();
// Null pointers where the compiler's target has none.
ConvertKernels avx2_converters();
ConvertKernels neon_converters();

// `Isa` as in reduce_loop.h: a type of an anonymous namespace.
template <class Format>
struct ConvertLoop {
  using Vec = typename Format::Vec;
  static constexpr std::size_t kLanes = sizeof(Vec) / sizeof(float);
  static constexpr std::size_t kStep = Format::kStepBytes;

  static void widen(const std::byte* from, std::size_t count, float* to) {
    const char* bytes = reinterpret_cast<const char*>(from);
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes, bytes += kStep) {
      const Vec v = Format::load(bytes);
      std::memcpy(to + i, &v, sizeof v);
    }
    if (i == count) return;
    char padded[kStep] = {};
    std::memcpy(padded, bytes, (count - i) * Format::kElementBytes);
    const Vec v = Format::load(padded);
    std::memcpy(to + i, &v, (count - i) * sizeof(float));
  }

  static void narrow(const float* from, std::size_t count, std::byte* to) {
    char* bytes = reinterpret_cast<char*>(to);
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes, bytes += kStep) {
      Vec v;
      std::memcpy(&v, from + i, sizeof v);
      Format::store(bytes, v);
    }
    if (i == count) return;
    Vec v = {};
    std::memcpy(&v, from + i, (count - i) * sizeof(float));
    char padded[kStep];
    Format::store(padded, v);
    std::memcpy(bytes, padded, (count - i) * Format::kElementBytes);
  }
};

template <class Isa>
ConvertKernels converters_of() {
  return {ConvertLoop<Half<Isa>>::widen, ConvertLoop<Half<Isa>>::narrow,
          ConvertLoop<Bfloat16<Isa>>::widen, ConvertLoop<Bfloat16<Isa>>::narrow};
}

}  // namespace riffle::rules
