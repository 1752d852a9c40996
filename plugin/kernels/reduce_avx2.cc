#include "plugin/kernels/reduce_kernels.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>

#include "plugin/kernels/reduce_loop.h"

namespace riffle {
namespace {

struct Avx2 {
  static constexpr std::size_t kBytes = 32;
  using Floats = Vector<float, kBytes>;
  using Ints = Vector<std::int32_t, kBytes>;

  static __m128i load8(const char* from) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  }
  static __m128i load16(const char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  // Packs work within halves of 128 bits; the first and third quarter hold the result.
  static __m128i packed16(Ints v) {
    const __m256i packed = _mm256_packus_epi32((__m256i)v, (__m256i)v);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0b1000));
  }

  static Ints widen8(const char* from) { return (Ints)_mm256_cvtepu8_epi32(load8(from)); }
  static void narrow8(char* to, Ints v) {
    const __m128i words = packed16(v);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
  }
  static Ints widen16(const char* from) { return (Ints)_mm256_cvtepu16_epi32(load16(from)); }
  static void narrow16(char* to, Ints v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed16(v));
  }
  // As in reduce_avx512.cc.
  static __m128i bytes_on_top(const char* from) {
    return _mm_slli_epi16(_mm_cvtepu8_epi16(load8(from)), 8);
  }
  static Floats load_float8(const char* from, E5m2Layout) {
    return (Floats)_mm256_cvtph_ps(bytes_on_top(from));
  }
  static Floats load_float8(const char* from, E4m3Layout) {
    const __m128i words = _mm_and_si128(_mm_srai_epi16(bytes_on_top(from), 1),
                                        _mm_set1_epi16(static_cast<short>(0xbfff)));
    const Floats v = (Floats)_mm256_cvtph_ps(words) * 256.0F;
    return ((Ints)v & 0x7fffffff) == 0x43f00000 ? Floats{} + __builtin_nanf("") : v;
  }
  static Floats load_half(const char* from) { return (Floats)_mm256_cvtph_ps(load16(from)); }
  static void store_half(char* to, Floats v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

ReduceKernel avx2_kernel(DataType type, ReduceOp op) { return Kernels<Avx2>::find(type, op); }
BlockKernels avx2_block_kernels() { return Kernels<Avx2>::of_blocks(); }

}  // namespace riffle

#else

namespace riffle {
ReduceKernel avx2_kernel(DataType, ReduceOp) { return nullptr; }
BlockKernels avx2_block_kernels() { return {}; }
}  // namespace riffle

#endif
