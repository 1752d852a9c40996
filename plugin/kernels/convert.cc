#include "plugin/kernels/convert.h"

#include <cstring>

#include "plugin/kernels/convert_kernels.h"
#include "plugin/kernels/reduce.h"
#include "topology/base/check.h"

namespace riffle::rules {
namespace {

// Vectors of 16 bytes, which every 64-bit processor has.
struct PortableConversion {
  static constexpr std::size_t kBytes = 16;
  static constexpr int kLanes = 4;
  using Floats = Vector<float, kBytes>;
  using Ints = Vector<std::int32_t, kBytes>;

  static Ints widen16(const char* from) {
    std::uint16_t narrow[kLanes];
    __builtin_memcpy(narrow, from, sizeof narrow);
    return Ints{narrow[0], narrow[1], narrow[2], narrow[3]};
  }
  static void narrow16(char* to, Ints v) {
    const std::uint16_t narrow[kLanes] = {
        static_cast<std::uint16_t>(v[0]), static_cast<std::uint16_t>(v[1]),
        static_cast<std::uint16_t>(v[2]), static_cast<std::uint16_t>(v[3])};
    __builtin_memcpy(to, narrow, sizeof narrow);
  }
  static Floats load_half(const char* from) {
    return NarrowFloat<PortableConversion, HalfLayout>::decode(widen16(from));
  }
  static void store_half(char* to, Floats v) {
    narrow16(to, NarrowFloat<PortableConversion, HalfLayout>::encode(v));
  }
};

const ConvertKernels& kernels() {
  static const ConvertKernels best = [] {
    const ConvertKernels special = best_isa() == Isa::kNeon ? neon_converters() : avx2_converters();
    const bool is_usable = best_isa() != Isa::kPortable && special.widen_half != nullptr;
    return is_usable ? special : portable_converters();
  }();
  return best;
}

}  // namespace

ConvertKernels portable_converters() { return converters_of<PortableConversion>(); }

bool supports(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat16 || type == DataType::kBfloat16;
}

void widen(const std::byte* from, DataType type, std::size_t count, float* to) {
  RIFFLE_CHECK(supports(type), "gradients are float32, float16 or bfloat16");
  if (type == DataType::kFloat32) {
    std::memcpy(to, from, count * sizeof(float));
  } else if (type == DataType::kFloat16) {
    kernels().widen_half(from, count, to);
  } else {
    kernels().widen_bfloat16(from, count, to);
  }
}

void narrow(const float* from, DataType type, std::size_t count, std::byte* to) {
  RIFFLE_CHECK(supports(type), "gradients are float32, float16 or bfloat16");
  if (type == DataType::kFloat32) {
    std::memcpy(to, from, count * sizeof(float));
  } else if (type == DataType::kFloat16) {
    kernels().narrow_half(from, count, to);
  } else {
    kernels().narrow_bfloat16(from, count, to);
  }
}

}  // namespace riffle::rules
