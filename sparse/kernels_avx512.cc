#include "sparse/kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>

#include "sparse/kernels_loop.h"

namespace riffle::sparse {
namespace {

struct Avx512 {
  static constexpr std::size_t kLanes = 16;
  using Vec = __m512;
  using Mask = unsigned;

  static __m256i load32(const char* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static Vec load_float(const char* from) { return _mm512_loadu_ps(from); }
  static Vec load_half(const char* from) { return _mm512_cvtph_ps(load32(from)); }
  static Vec load_bfloat(const char* from) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load32(from)), 16));
  }
  static Mask hits(Vec v, std::uint32_t least) {
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(kMagnitudeMask));
    return _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(static_cast<int>(least)));
  }
  // Compressed in the register and stored whole: storing compressed takes ten times as long on some
  // processors.
  static std::size_t emit(Vec v, Mask hit, std::uint32_t base, std::uint32_t* indices,
                          float* values) {
    const auto mask = static_cast<__mmask16>(hit);
    const __m512i lanes =
        _mm512_add_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(static_cast<int>(base)));
    _mm512_storeu_si512(indices, _mm512_maskz_compress_epi32(mask, lanes));
    _mm512_storeu_ps(values, _mm512_maskz_compress_ps(mask, v));
    return static_cast<std::size_t>(__builtin_popcount(hit));
  }
  static Vec add(Vec v, const float* residual) {
    return _mm512_add_ps(v, _mm512_loadu_ps(residual));
  }
  static void store(float* out, Vec v) { _mm512_storeu_ps(out, v); }
  static void stream(float* out, Vec v) { _mm512_stream_ps(out, v); }
  static void end_stream() { _mm_sfence(); }
};

}  // namespace

const Kernels* avx512_kernels() { return &KernelsOf<Avx512>::kAll; }

}  // namespace riffle::sparse

#else

namespace riffle::sparse {
const Kernels* avx512_kernels() { return nullptr; }
}  // namespace riffle::sparse

#endif
