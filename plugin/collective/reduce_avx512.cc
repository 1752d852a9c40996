#include "plugin/collective/reduce_kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>

#include "plugin/collective/reduce_loop.h"

namespace riffle {
namespace {

struct Avx512 {
  static constexpr std::size_t kBytes = 64;
  using Floats = Vector<float, kBytes>;
  using Ints = Vector<std::int32_t, kBytes>;

  static __m128i load16(const char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static __m256i load32(const char* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }

  static Ints widen8(const char* from) { return (Ints)_mm512_cvtepu8_epi32(load16(from)); }
  static void narrow8(char* to, Ints v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8((__m512i)v));
  }
  static Ints widen16(const char* from) { return (Ints)_mm512_cvtepu16_epi32(load32(from)); }
  static void narrow16(char* to, Ints v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16((__m512i)v));
  }
  static Floats load_half(const char* from) { return (Floats)_mm512_cvtph_ps(load32(from)); }
  static void store_half(char* to, Floats v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

ReduceKernel avx512_kernel(DataType type, ReduceOp op) { return Kernels<Avx512>::find(type, op); }

}  // namespace riffle

#else

namespace riffle {
ReduceKernel avx512_kernel(DataType, ReduceOp) { return nullptr; }
}  // namespace riffle

#endif
