#include "sparse/half.h"
#include "sparse/kernels_loop.h"

namespace riffle::sparse {
namespace {

struct Portable {
  static constexpr std::size_t kLanes = 1;
  using Vec = float;
  using Mask = unsigned;

  static Vec load_float(const char* from) {
    float x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  static std::uint16_t load16(const char* from) {
    std::uint16_t x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  static Vec load_half(const char* from) { return from_half(load16(from)); }
  static Vec load_bfloat(const char* from) {
    const std::uint32_t bits = std::uint32_t{load16(from)} << 16;
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
  }
  static Mask hits(Vec v, std::uint32_t least) { return magnitude_of(v) >= least ? 1 : 0; }
  static std::size_t emit(Vec v, Mask hit, std::uint32_t base, std::uint32_t* indices,
                          float* values) {
    *indices = base;
    *values = v;
    return hit;
  }
  static Vec add(Vec v, const float* residual) { return v + *residual; }
  static void store(float* out, Vec v) { *out = v; }
  static void stream(float* out, Vec v) { store(out, v); }
  static void end_stream() {}
};

}  // namespace

const Kernels* portable_kernels() { return &KernelsOf<Portable>::kAll; }

}  // namespace riffle::sparse
