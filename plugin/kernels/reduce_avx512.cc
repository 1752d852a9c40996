#include "plugin/kernels/reduce_kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>

#include "plugin/kernels/reduce_loop.h"

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
  // e5m2 is the upper half of a float16. e4m3, with its exponent in the place of float16's, is too
  // small by 2^8, which the multiplication makes good, exactly also for subnormal numbers; its one
  // NaN comes out as 480, which no other code does.
  static __m256i bytes_on_top(const char* from) {
    return _mm256_slli_epi16(_mm256_cvtepu8_epi16(load16(from)), 8);
  }
  static Floats load_float8(const char* from, E5m2Layout) {
    return (Floats)_mm512_cvtph_ps(bytes_on_top(from));
  }
  static Floats load_float8(const char* from, E4m3Layout) {
    const __m256i words = _mm256_and_si256(_mm256_srai_epi16(bytes_on_top(from), 1),
                                           _mm256_set1_epi16(static_cast<short>(0xbfff)));
    const Floats v = (Floats)_mm512_cvtph_ps(words) * 256.0F;
    return ((Ints)v & 0x7fffffff) == 0x43f00000 ? Floats{} + __builtin_nanf("") : v;
  }
  static Floats load_half(const char* from) { return (Floats)_mm512_cvtph_ps(load32(from)); }
  static void store_half(char* to, Floats v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

ReduceKernel avx512_kernel(DataType type, ReduceOp op) { return Kernels<Avx512>::find(type, op); }
BlockKernels avx512_block_kernels() { return Kernels<Avx512>::of_blocks(); }

}  // namespace riffle

#else

namespace riffle {
ReduceKernel avx512_kernel(DataType, ReduceOp) { return nullptr; }
BlockKernels avx512_block_kernels() { return {}; }
}  // namespace riffle

#endif
