#include "plugin/kernels/convert_kernels.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>

namespace riffle::rules {
namespace {

struct Avx2 {
  static constexpr std::size_t kBytes = 32;
  using Floats = Vector<float, kBytes>;
  using Ints = Vector<std::int32_t, kBytes>;

  static __m128i load16(const char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static Ints widen16(const char* from) { return (Ints)_mm256_cvtepu16_epi32(load16(from)); }
  // Packs work within halves of 128 bits; the first and third quarter hold the result.
  static void narrow16(char* to, Ints v) {
    const __m256i packed = _mm256_packus_epi32((__m256i)v, (__m256i)v);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0b1000)));
  }
  static Floats load_half(const char* from) { return (Floats)_mm256_cvtph_ps(load16(from)); }
  static void store_half(char* to, Floats v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

ConvertKernels avx2_converters() { return converters_of<Avx2>(); }

}  // namespace riffle::rules

#else

namespace riffle::rules {
ConvertKernels avx2_converters() { return {}; }
}  // namespace riffle::rules

#endif
