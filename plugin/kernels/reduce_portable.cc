#include "plugin/kernels/reduce_loop.h"

namespace riffle {
namespace {

// Vectors of 16 bytes, which every 64-bit processor has; conversions element by element.
struct Portable {
  static constexpr std::size_t kBytes = 16;
  static constexpr int kLanes = 4;
  using Floats = Vector<float, kBytes>;
  using Ints = Vector<std::int32_t, kBytes>;

  template <class T>
  static Ints widen(const char* from) {
    T narrow[kLanes];
    __builtin_memcpy(narrow, from, sizeof narrow);
    return Ints{narrow[0], narrow[1], narrow[2], narrow[3]};
  }
  template <class T>
  static void narrow(char* to, Ints v) {
    const T narrow[kLanes] = {static_cast<T>(v[0]), static_cast<T>(v[1]), static_cast<T>(v[2]),
                              static_cast<T>(v[3])};
    __builtin_memcpy(to, narrow, sizeof narrow);
  }
  static Ints widen8(const char* from) { return widen<std::uint8_t>(from); }
  static void narrow8(char* to, Ints v) { narrow<std::uint8_t>(to, v); }
  static Ints widen16(const char* from) { return widen<std::uint16_t>(from); }
  static void narrow16(char* to, Ints v) { narrow<std::uint16_t>(to, v); }
  static Floats load_half(const char* from) {
    return NarrowFloat<Portable, HalfLayout>::decode(widen16(from));
  }
  static void store_half(char* to, Floats v) {
    narrow16(to, NarrowFloat<Portable, HalfLayout>::encode(v));
  }
};

}  // namespace

ReduceKernel portable_kernel(DataType type, ReduceOp op) {
  return Kernels<Portable>::find(type, op);
}

BlockKernels portable_block_kernels() { return Kernels<Portable>::of_blocks(); }

}  // namespace riffle
